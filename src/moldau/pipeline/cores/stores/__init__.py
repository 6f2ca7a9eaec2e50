"""What tasks remember between batches and restarts: stores by kind, over a backend of bytes. Start at `store`."""
