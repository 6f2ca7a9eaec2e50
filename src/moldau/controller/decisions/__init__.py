"""What the controller decides from the image alone, subject by subject: no I/O, no clock. Start at `topics`."""
