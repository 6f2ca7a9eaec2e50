"""Opening logs at startup: what is found on disk is trusted or repaired. Start at `loading`."""
