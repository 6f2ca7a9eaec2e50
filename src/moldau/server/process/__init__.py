"""What any process of a server needs: file descriptors, late imports, log output, its file while it runs."""
