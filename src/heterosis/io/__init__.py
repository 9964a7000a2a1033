"""Arrays in files and bytes: data only, checked before anything is made of it."""
