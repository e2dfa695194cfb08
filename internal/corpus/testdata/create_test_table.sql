-- Stands in for the script that the playbook reads from its own repository.
CREATE TABLE IF NOT EXISTS public.script_test (
  id     serial PRIMARY KEY,
  name   text NOT NULL,
  note   text -- a semicolon; in a comment
);
TRUNCATE public.script_test;
INSERT INTO public.script_test (name, note) VALUES ('one', 'a;b'), ('two', $$c;d$$), ('three', NULL);
SELECT count(*) AS total_records, 'file' AS script_source FROM public.script_test;
