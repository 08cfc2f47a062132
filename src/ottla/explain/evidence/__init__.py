"""Evidence: what a log, the internal topics, descriptions and the journal say. Reading only, no judgement."""
