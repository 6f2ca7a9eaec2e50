"""Starting and stopping servers from the command line."""
