"""Recovery of lost websites: plan (pure), crawl, restore, store, measure."""
