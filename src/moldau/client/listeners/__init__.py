"""Listeners: functions of an application that are called for each record, with retries and dead-letter topics."""
