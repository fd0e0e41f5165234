"""Look: facts about prefixes, interpreters, GPUs and the host; nothing is changed, nothing imported from there."""
