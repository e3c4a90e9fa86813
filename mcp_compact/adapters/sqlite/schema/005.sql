-- A marker tells the newest boundary before it by itself, however many clearings stand between.

ALTER TABLE marker ADD COLUMN boundary_seq INTEGER; -- newest compact boundary of the chain that it ends, 0 for none; NULL: from before this column

