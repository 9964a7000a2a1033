"""Images, and boxes on them."""
