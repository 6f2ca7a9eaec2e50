"""Sockets: frames in, replies out in order, limits on what a client may hold. Knows no API but the frame."""
