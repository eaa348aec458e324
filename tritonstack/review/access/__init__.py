"""Access that a change gives or removes: permissions of principals, resource policies, openings to the outside."""
