"""Where rows live that are not an array: files larger than memory, and frames on other machines."""
