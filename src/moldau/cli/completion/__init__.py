"""Shell completion: the words that may follow those typed so far."""
