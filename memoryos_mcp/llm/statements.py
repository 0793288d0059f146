def learn_knowledge(pages, facts): return ()
