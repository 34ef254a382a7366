"""General helpers: argument checks, files, processes, progress."""
