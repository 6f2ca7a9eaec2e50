"""kafka-transactions: who has a transaction open, where it hangs, and how to end it."""
