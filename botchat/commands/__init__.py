"""What each command does: flags -> one pipeline call -> what is printed. See `botchat.cli`."""
