"""What can be measured without a judge."""
