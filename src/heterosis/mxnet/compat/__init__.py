"""What programs written for MXNet find here."""
