"""Damaged files of models and populations give the same answers as before, or one clear error.

GLMBRIAN_EXHAUSTIVE=1 tries every byte and every value, about 10,000 files.
"""

import io
import json
import os
import pickle
import time
import zipfile

import numpy as np
import pytest
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian.support.storage import save_npz

LONGEST_SECONDS = 10
X = np.random.default_rng(0).integers(0, 256, (12, 5))
Y = np.tile(["blue", "green", "red"], 4)


@pytest.fixture(scope="module", params=[(), (4, 3)], ids=["two layers", "hidden layers"])
def model(request, tmp_path_factory):
    """A small classifier with everything that a file can hold, and its file."""
    hidden = {}
    if request.param:
        hidden = dict(
            hidden=request.param,
            hidden_basis=glm.CustomBasis([[1.0, 0.5]]),
            hidden_feedback=glm.CustomBasis([[0.5]]),
        )
    classifier = glm.GLMClassifier(
        "rate", n_steps=2, n_epochs=2, device="runtime", random_state=1, verbose=False,
        basis=glm.CustomBasis([[1.0, 0.0], [0.5, 1.0]]), scale_inputs=True, **hidden,
    )  # fmt: skip
    classifier.fit(X, Y)
    classifier.feature_names_in_ = np.array(list("abcde"), dtype=object)  # as from a data frame
    path = tmp_path_factory.mktemp("model") / "model.npz"
    classifier.save(path)
    return classifier, path


def content_of(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name not in ("format", "checksum")}


def everything(classifier):
    """Return, as bytes, everything that predictions and further training depend on."""
    parameters = classifier.get_params()
    for name in ("basis", "hidden_basis", "hidden_feedback"):
        parameters[name] = parameters[name] and parameters[name].matrix.tolist()
    state = {
        name: (value.dtype.str, value.shape, value.tolist()) if isinstance(value, np.ndarray) else value
        for name, value in vars(classifier).items()
        if name not in ("timing_", "decisions_", *parameters)
    }
    state["basis_"] = classifier.basis_.matrix.tolist()
    state["hidden_layers_"] = [
        [layer.weights.tolist(), layer.feedback.tolist(), layer.bias.tolist()]
        + [basis.matrix.tolist() for basis in (layer.basis, layer.feedback_basis)]
        for layer in classifier.hidden_layers_
    ]
    scaler = classifier.scaler_
    state["scaler_"] = scaler and (scaler.data_min_.tolist(), scaler.data_max_.tolist())
    return json.dumps([parameters, state], sort_keys=True, default=str)


def loaded_or_refused(path, load=glm.GLMClassifier.load):
    """Return what is loaded, or None after an error of the right kind."""
    started = time.process_time()
    try:
        return load(path)
    except (ValueError, OSError) as error:
        assert str(path) in str(error) and "\n" not in str(error)
    finally:
        assert time.process_time() - started < LONGEST_SECONDS


def test_every_changed_byte_is_noticed(model, tmp_path):
    classifier, path = model
    whole, expected = path.read_bytes(), everything(glm.GLMClassifier.load(path))
    changed, n_refused = tmp_path / "changed.npz", 0
    places = range(0, len(whole), 1 if EXHAUSTIVE else 23)
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        changed.write_bytes(data)
        loaded = loaded_or_refused(changed)
        assert loaded is None or everything(loaded) == expected, place
        n_refused += loaded is None
    assert n_refused > 0.8 * len(places)
    print(f"{len(places)} changed bytes, {n_refused} refused")


def test_a_changed_shape_in_a_header(model, tmp_path):
    """zipfile verifies its own checksums only if a part is read to its end."""
    data = bytearray(model[1].read_bytes())
    data[data.index(b"(2, 2)") + 1] = ord("1")
    (tmp_path / "changed.npz").write_bytes(data)
    assert loaded_or_refused(tmp_path / "changed.npz") is None


def test_files_that_end_early(model, tmp_path):
    whole = model[1].read_bytes()
    for size in range(0, len(whole), 1 if EXHAUSTIVE else 101):
        (tmp_path / "short.npz").write_bytes(whole[:size])
        assert loaded_or_refused(tmp_path / "short.npz") is None


BAD_ARRAYS = [
    np.array(1.5), np.array("x"), np.array(np.nan), np.zeros(0), np.zeros((0, 0)), np.zeros(3),
    np.ones((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), 1e308), np.zeros((2, 2)),
    np.full((5, 3, 2), np.inf), np.full((5, 3, 2), 1e308), np.ones((5, 3, 2), dtype=complex),
    np.ones((5, 3, 2), dtype=bool), np.ones((3, 2), dtype=np.int64), np.full(3, np.nan),
    np.full((2, 5), 1e308) * [[-1.0], [1.0]], np.array([[1.0] * 5, [0.0] * 5]),
    np.array(["red", "green", "blue"]), np.array(["blue", "blue", "red"]),
    np.array(["a", "b", "c", "d"]), np.array(["a"] * 5), np.array([1.0, 2.0, np.nan]),
    np.array([1, 2, 3 + 1j]), np.array([0.5, 1.5, 2.5]), np.array([-0.0, 0.0, 1.0]),
    np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[ns]"),
    np.array([1, 2, 3], dtype="m8[ns]"), np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    np.array([b"a", b"b", b"c"]), np.array([True, False]), np.array([3, 2, 1]), np.array([1, 1, 2]),
    np.zeros((3, 0)), np.array("{}"), np.array("[" * 5000), np.array("null"), np.array('{"keys": NaN}'),
    np.ones((5, 3, 2), dtype=">f8"), np.ones((1, 1, 1)),
]  # fmt: skip

BAD_VALUES = [
    None, True, False, 0, -1, 1, 2.5, 1e308, -1e308, 10**30, 2**63, 2**64, 2**65, "", "x", "auto", "1\n2",
    "1\nn_epochs 3", "0", [], {}, [1], [[1.0]], [[0.0]], [[1e308]], [None], ["a"], {"a": 1}, [[1], [2, 3]],
    [True] * 6, [1.5] * 6, ["1\nn_epochs 3"] * 6, [-1] * 6, [2**64] * 6, [2**65] * 6, [1] * 5, [1] * 7,
]  # fmt: skip


def variants_of_fields(path):
    """Yield what was replaced, and the content of the file."""
    content = content_of(path)
    config = json.loads(str(content["config"]))
    del config["format"]  # as in files without checksums
    content["config"] = np.array(json.dumps(config))
    for name in content:
        yield name, {other: content[other] for other in content if other != name}
        for number, array in enumerate(BAD_ARRAYS):
            yield f"{name}: {number}", {**content, name: array}
    places = [(config, name) for name in config]
    places += [(config["parameters"], name) for name in config["parameters"]]
    places += [(config, "unknown"), (config["parameters"], "unknown")]
    for holder, name in places:
        kept = holder.pop(name, None)
        if name != "unknown":
            yield f"no {name}", {**content, "config": np.array(json.dumps(config))}
        for value in BAD_VALUES:
            holder[name] = value
            yield f"{name}={value!r}", {**content, "config": np.array(json.dumps(config))}
        del holder[name]
        if name != "unknown":
            holder[name] = kept
    text = str(content["config"])
    for constant in ("NaN", "Infinity", "-Infinity"):
        for name in ("n_steps", "learning_rate", "bias_init"):
            old = json.dumps(config["parameters"][name])
            yield f"{name}={constant}", {
                **content, "config": np.array(text.replace(f'"{name}": {old}', f'"{name}": {constant}'))
            }  # fmt: skip


@pytest.mark.parametrize("has_checksum", [True, False])
def test_every_field_is_checked(model, tmp_path, has_checksum):
    """Even if the checksum is right, or is missing."""
    path = tmp_path / "changed.npz"
    n_loaded, variants = 0, list(variants_of_fields(model[1]))
    for what, content in variants if EXHAUSTIVE else variants[has_checksum::7]:
        if has_checksum:
            save_npz(path, content)
        else:
            np.savez(path, **content)
        loaded = loaded_or_refused(path)
        if loaded is None:
            continue
        n_loaded += 1
        learned = (
            loaded.weights_,
            loaded.feedback_,
            loaded.bias_,
            loaded.basis_.matrix,
            loaded.history_,
            *(array for layer in loaded.hidden_layers_ for array in (layer.weights, layer.bias)),
        )
        assert all(np.all(np.isfinite(array)) for array in learned), what
        assert all(type(key) is int for key in loaded.streams_.to_file()), what
        assert loaded.classes_.tolist() == sorted(set(loaded.classes_.tolist())), what
        if loaded.n_steps < 100:
            loaded.set_params(device="runtime", verbose=False)
            frame = X if loaded.n_features_in_ == 5 else X[:, : loaded.n_features_in_]
            if not hasattr(loaded, "feature_names_in_"):
                assert len(loaded.predict(frame[:2])) == 2, what
    print(f"{len(variants)} variants, {n_loaded} loaded")


def refused(content, path, match, write=save_npz):
    write(path, content)
    with pytest.raises(ValueError, match=match):
        glm.GLMClassifier.load(path)


def test_errors_say_what_is_wrong(model, tmp_path):
    content, path = content_of(model[1]), tmp_path / "model.npz"
    refused(
        {**content, "classes": content["classes"][::-1]}, path, "classes must be distinct and sorted"
    )
    refused({**content, "basis": 0 * content["basis"]}, path, "zero|feedback_basis")
    refused({**content, "bias": content["bias"] + 1e308}, path, "bias must hold values up to 1e\\+100")
    refused({**content, "history": np.zeros(1000)}, path, "history must have one entry per epoch")
    refused({**content, "more": np.zeros(2)}, path, "it holds an unknown part 'more'")
    names = np.array(list("abcda"))
    refused({**content, "feature_names": names}, path, "feature_names must be 5 distinct names")
    refused(
        {**content, "input_range": content["input_range"][::-1]},
        path,
        "input_range must hold the lowest",
    )
    config = json.loads(str(content["config"]))
    for change, match in [
        ({"keys": ["1\nn_epochs 3"] * 6}, "keys\\[0\\] must be an integer from 0"),
        ({"keys": [1, 2, 3]}, "keys must be a list of 6 integers"),
        ({"n_presentations": -1}, "n_presentations must be an integer from 0"),
        ({"parameters": {**config["parameters"], "n_steps": 2.5}}, "n_steps must be an integer"),
        ({"parameters": {**config["parameters"], "depth": 2}, "version": "9.0"},
         "the parameter 'depth', .* written by glmbrian 9.0"),
        ({"parameters": {"n_steps": 2}}, "it lacks the parameter 'activation'"),
    ]:  # fmt: skip
        refused({**content, "config": np.array(json.dumps({**config, **change}))}, path, match)
    if "hidden_basis" in content:
        bias = content["hidden_0_bias"]
        refused({**content, "hidden_1_bias": bias}, path, r"hidden_1_weights must have the shape")
        without = {name: content[name] for name in content if name != "hidden_1_bias"}
        refused(without, path, "it lacks 'hidden_1_bias'")
        refused({**content, "hidden_3_bias": bias}, path, "it lacks a hidden layer")
        refused({**without, "hidden_9999999_bias": bias}, path, "it holds an unknown part")
        without = {name: content[name] for name in content if name != "hidden_basis"}
        refused(without, path, "hidden_basis must be there")


def test_archives_of_other_programs(model, tmp_path):
    path = tmp_path / "model.npz"
    content = content_of(model[1])
    with np.load(model[1]) as file:
        whole = dict(file)
    lost = {name: array for name, array in whole.items() if name != "checksum"}
    refused(lost, path, "it lacks 'checksum'", lambda path, arrays: np.savez(path, **arrays))
    refused(content, path, "its checksum is missing", lambda path, arrays: np.savez(path, **arrays))
    changed = {**whole, "bias": whole["bias"] + 1e-16 + whole["bias"] * 1e-15}
    refused(changed, path, "its checksum does not match", lambda path, arrays: np.savez(path, **arrays))
    newer = {**whole, "format": np.array(3)}
    refused(newer, path, "a newer version of glmbrian", lambda path, arrays: np.savez(path, **arrays))
    refused(content, path, "compressed", lambda path, arrays: np.savez_compressed(path, **arrays))
    objects = {**content, "classes": np.array([{}, []], dtype=object)}
    refused(objects, path, "classes must not be an array of object",
            lambda path, arrays: np.savez(path, **arrays))  # fmt: skip
    path.write_bytes(pickle.dumps(model[0]))
    assert loaded_or_refused(path) is None
    np.save(tmp_path / "array.npy", np.zeros(3))
    assert loaded_or_refused(tmp_path / "array.npy") is None


def npy(shape, dtype="<f8"):
    """Return the header of an array of that shape, without its values."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def test_no_more_is_unpacked_than_the_file_holds(model, tmp_path):
    path = tmp_path / "bomb.npz"
    for name, data, compression in [
        ("more.npy", npy((2**28,)) + bytes(2**24), zipfile.ZIP_DEFLATED),
        ("weights.npy", npy((2**21,)) + bytes(2**24), zipfile.ZIP_DEFLATED),
        ("weights.npy", npy((2**45,)), zipfile.ZIP_STORED),
        ("weights.npy", npy((-1,)), zipfile.ZIP_STORED),
        ("weights.npy", npy((2**62, 0)), zipfile.ZIP_STORED),
        ("weights.npy", npy((2**40,), "<U0"), zipfile.ZIP_STORED),
        ("weights.npy", b"\x93NUMPY\x01\x00" + b"\xff\xff" + b"(" * 65535, zipfile.ZIP_STORED),
    ]:
        with zipfile.ZipFile(model[1]) as whole, zipfile.ZipFile(path, "w") as made:
            for member in whole.namelist():
                if member != name:
                    made.writestr(member, whole.read(member))
            made.writestr(name, data, compression)
        assert loaded_or_refused(path) is None
    with zipfile.ZipFile(model[1]) as whole, zipfile.ZipFile(path, "w") as made:
        with pytest.warns(UserWarning, match="Duplicate name"):
            for member in [*whole.namelist(), "bias.npy"]:
                made.writestr(member, whole.read(member))
    with pytest.raises(ValueError, match="it holds 'bias' twice"):
        glm.GLMClassifier.load(path)


def test_endless_files_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in ("/dev/zero", tmp_path / "pipe.npz"):
        for load in (glm.GLMClassifier.load, glm.GLMPopulation.load):
            with pytest.raises(OSError, match="path: cannot read .* it is not a plain file"):
                load(path)
    for load in (glm.GLMClassifier.load, glm.GLMPopulation.load):
        with pytest.raises(TypeError, match="path must be a path"):
            load(3)
        with pytest.raises(
            ValueError, match="path must be a path, which cannot contain zero characters"
        ):
            load("a\0b")


# ------------------------------------------------------------------ populations


def parameters_of(population):
    bases = [
        basis and basis.matrix.tolist()
        for basis in (*population.kernels.values(), population.feedback_basis)
    ]
    weights = [*population.weights.values(), population.bias, np.array(population.feedback_weights)]
    weights = [array.tolist() for array in weights]
    return repr([list(population.kernels), bases, weights, population.activation.name])


def test_populations(tmp_path):
    basis = glm.IndicatorBasis(2)
    population = glm.GLMPopulation(
        [0.5, 1.0], {"stimulus": basis}, np.ones((1, 2, 2)), basis, np.ones((2, 2)), "probit"
    )
    path, changed = tmp_path / "population.npz", tmp_path / "changed.npz"
    population.save(path)
    whole, content = path.read_bytes(), content_of(path)
    for place in range(0, len(whole), 1 if EXHAUSTIVE else 23):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        changed.write_bytes(data)
        loaded = loaded_or_refused(changed, glm.GLMPopulation.load)
        assert loaded is None or parameters_of(loaded) == parameters_of(population), place
    for name in content:
        for array in BAD_ARRAYS if EXHAUSTIVE else BAD_ARRAYS[::3]:
            for write in (save_npz, lambda path, arrays: np.savez(path, **arrays)):
                write(changed, {**content, name: array})
                loaded = loaded_or_refused(changed, glm.GLMPopulation.load)
                assert loaded is None or np.all(np.isfinite(loaded.bias))
    np.savez(changed, **content)  # as version 0.1 did
    assert parameters_of(glm.GLMPopulation.load(changed)) == parameters_of(population)
