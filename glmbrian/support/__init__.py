"""What any package needs: checks of arguments, files, processes, progress."""
