def learn_traits(pages, traits): return ()
