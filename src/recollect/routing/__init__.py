"""Which archives can hold a URI: the evidence of maps, samples and learned counts, and the choice among archives."""
