"""The MNIST subset that glmbrian ships; `glmbrian.datasets.load_mnist` reads it."""
