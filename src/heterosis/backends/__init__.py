"""Back ends: what turns programs into something that runs."""
