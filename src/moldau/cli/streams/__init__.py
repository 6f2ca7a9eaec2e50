"""`moldau streams`: run, describe and reset applications."""
