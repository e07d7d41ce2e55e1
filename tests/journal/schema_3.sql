BEGIN TRANSACTION;
CREATE TABLE attempt(
  task TEXT NOT NULL REFERENCES task(id), generation INTEGER NOT NULL, round INTEGER NOT NULL,
  instruction TEXT NOT NULL,
  edit_outcome TEXT, edit_reason TEXT NOT NULL DEFAULT '', edit_retry_after REAL,
  edit_fatal INTEGER NOT NULL DEFAULT 0,
  edited TEXT REFERENCES blob(sha256), raw TEXT REFERENCES blob(sha256), mask TEXT REFERENCES blob(sha256),
  support TEXT,
  judge_outcome TEXT, judge_reason TEXT NOT NULL DEFAULT '', judge_retry_after REAL,
  judge_fatal INTEGER NOT NULL DEFAULT 0,
  superseded INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, generation, round)
) STRICT, WITHOUT ROWID;
INSERT INTO "attempt" VALUES('1b2093a8607a9147c559',0,1,'two judges','ok','',NULL,0,'1fb9f4097256db2d7b1e13aff79cee44339891a31c556b9cf6093885773b3618',NULL,NULL,NULL,'ok','',NULL,0,1);
INSERT INTO "attempt" VALUES('4040976e8d1bccc98fea',0,1,'add a small pneumothorax, try 1','ok','',NULL,0,'058e1ac742d8bfeaf02034e6dd6ae083f6f0f318a993f250236d47d9f974a13b',NULL,NULL,'local','ok','',NULL,0,0);
INSERT INTO "attempt" VALUES('ce930cbb48224f0b2990',0,1,'one',NULL,'',NULL,0,NULL,NULL,NULL,NULL,NULL,'',NULL,0,0);
INSERT INTO "attempt" VALUES('ce930cbb48224f0b2990',0,2,'two',NULL,'',NULL,0,NULL,NULL,NULL,NULL,NULL,'',NULL,0,0);
CREATE TABLE batch_job(
  key TEXT PRIMARY KEY, model TEXT NOT NULL, path TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('formed', 'running', 'ended', 'closed')),
  provider_id TEXT NOT NULL DEFAULT '', formed_at TEXT NOT NULL, ended_at TEXT,
  reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE TABLE batch_request(
  key TEXT PRIMARY KEY, call INTEGER NOT NULL REFERENCES call(id), job TEXT REFERENCES batch_job(key)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob(
  sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, pixel_sha256 TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO "blob" VALUES('058e1ac742d8bfeaf02034e6dd6ae083f6f0f318a993f250236d47d9f974a13b',24,'image/jpeg',NULL);
INSERT INTO "blob" VALUES('1fb9f4097256db2d7b1e13aff79cee44339891a31c556b9cf6093885773b3618',6,'image/jpeg',NULL);
INSERT INTO "blob" VALUES('b0f4b2e7996a5f4f315bdbc6233973376144870ecd6524e417c05c36dde88745',8,'image/jpeg',NULL);
CREATE TABLE call(
  id INTEGER PRIMARY KEY, task TEXT NOT NULL REFERENCES task(id), generation INTEGER NOT NULL,
  round INTEGER NOT NULL, step TEXT NOT NULL, draw INTEGER NOT NULL, tries INTEGER NOT NULL,
  model TEXT NOT NULL, request_hash TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('started', 'settled')),
  outcome TEXT, reason TEXT NOT NULL DEFAULT '', retry_after REAL, fatal INTEGER NOT NULL DEFAULT 0,
  final INTEGER NOT NULL DEFAULT 0, served_model TEXT NOT NULL DEFAULT '',
  finish_reason TEXT NOT NULL DEFAULT '', usage TEXT NOT NULL DEFAULT '{}',
  reserved_usd REAL, cost_usd REAL, latency_s REAL, started_at TEXT NOT NULL,
  answer TEXT NOT NULL DEFAULT '', raw TEXT NOT NULL DEFAULT '',
  UNIQUE (task, generation, round, step, draw, tries)
) STRICT;
INSERT INTO "call" VALUES(1,'4040976e8d1bccc98fea',0,1,'write',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'','','{"served_model":"","input_tokens":null,"output_tokens":null,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":null,"finish_reason":"","response_id":"","thought_summary":""}',0.25,NULL,NULL,'2026-11-22T12:24:31.167+00:00','add a small pneumothorax, try 1','');
INSERT INTO "call" VALUES(2,'4040976e8d1bccc98fea',0,1,'edit',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'m','','{"served_model":"m","input_tokens":10,"output_tokens":20,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":1,"finish_reason":"","response_id":"","thought_summary":""}',0.25,0.2,1.5,'2026-11-22T12:24:31.170+00:00','{}','raw');
INSERT INTO "call" VALUES(3,'4040976e8d1bccc98fea',0,1,'judge',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'','','{"served_model":"","input_tokens":null,"output_tokens":null,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":null,"finish_reason":"","response_id":"","thought_summary":""}',0.25,0.05,NULL,'2026-11-22T12:24:31.182+00:00','','');
INSERT INTO "call" VALUES(4,'1b2093a8607a9147c559',0,1,'write',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'','','{"served_model":"","input_tokens":null,"output_tokens":null,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":null,"finish_reason":"","response_id":"","thought_summary":""}',0.25,NULL,NULL,'2026-11-22T12:24:31.196+00:00','two judges','');
INSERT INTO "call" VALUES(5,'1b2093a8607a9147c559',0,1,'edit',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'','','{"served_model":"","input_tokens":null,"output_tokens":null,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":null,"finish_reason":"","response_id":"","thought_summary":""}',0.25,NULL,NULL,'2026-11-22T12:24:31.233+00:00','{}','');
INSERT INTO "call" VALUES(6,'1b2093a8607a9147c559',0,1,'judge',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','settled','ok','',NULL,0,1,'','','{"served_model":"","input_tokens":null,"output_tokens":null,"thinking_tokens":null,"cached_tokens":null,"input_image_tokens":null,"output_image_tokens":null,"images":null,"finish_reason":"","response_id":"","thought_summary":""}',0.25,NULL,NULL,'2026-11-22T12:24:31.246+00:00','{"criteria":{"instruction_compliance":{"passed":false,"confidence":null,"codes":["too_subtle","wrong_location"],"evidence":"x\u0000y \"z\""},"structural_plausibility":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"realism":{"passed":false,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"fidelity_preservation":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"}},"has_disease":false,"other_disease":false,"opinion":true,"reason":"a \"quoted\" line\nand another, \u0000 nul, 🍌"}','');
INSERT INTO "call" VALUES(7,'1b2093a8607a9147c559',1,1,'write',0,1,'offline/procedural','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','started',NULL,'',NULL,0,0,'','','{}',0.25,NULL,NULL,'2026-11-22T12:24:31.267+00:00','','');
CREATE TABLE image(
  id TEXT PRIMARY KEY, record TEXT NOT NULL, prepared TEXT NOT NULL REFERENCES blob(sha256)
) STRICT, WITHOUT ROWID;
INSERT INTO "image" VALUES('i0','{"id":"i0","dataset":"sample","modality":"chest_xray","labels":["No Finding"],"licence":"open","source_sha256":"0000000000000000000000000000000000000000000000000000000000000000","prepared_sha256":"b0f4b2e7996a5f4f315bdbc6233973376144870ecd6524e417c05c36dde88745","geometry":{"width":10,"height":12,"mode":"pad","left":1,"top":0,"inner_width":8,"inner_height":10},"version":"","group":null,"split":"","frame":0,"view":"unknown","projection":"unknown","position":"unknown","sequence":"unknown","contrast":"unknown","plane":"unknown","laterality":"unknown","spacing_mm":null,"text_checked":false,"synthetic":false,"consent":null,"note":""}','b0f4b2e7996a5f4f315bdbc6233973376144870ecd6524e417c05c36dde88745');
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('code_version','0.1.0');
INSERT INTO "meta" VALUES('frozen','{"rounds":5,"models":["a",null,0.5]}');
INSERT INTO "meta" VALUES('name','pilot');
INSERT INTO "meta" VALUES('run_id','run-1');
INSERT INTO "meta" VALUES('schema_version','3');
INSERT INTO "meta" VALUES('seed','7');
CREATE TABLE score(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL, metric TEXT NOT NULL,
  value REAL, reason TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (task, generation, round, metric),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;
INSERT INTO "score" VALUES('ce930cbb48224f0b2990',0,1,'ssim',0.5,'','{}');
INSERT INTO "score" VALUES('ce930cbb48224f0b2990',0,2,'ssim',NULL,'no image','{}');
CREATE TABLE session(
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT,
  replayed INTEGER NOT NULL DEFAULT 0, peak_rss_mb REAL, detail TEXT NOT NULL DEFAULT '{}'
) STRICT;
INSERT INTO "session" VALUES(1,1,'elsewhere','2026-11-22T12:24:31.149+00:00',NULL,0,NULL,'{}');
CREATE TABLE tally(
  what TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL, total REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (what, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "tally" VALUES('attempt','current',3,0.0);
INSERT INTO "tally" VALUES('attempt','superseded',1,0.0);
INSERT INTO "tally" VALUES('blob','image/jpeg',3,38.0);
INSERT INTO "tally" VALUES('call','ok',6,0.25);
INSERT INTO "tally" VALUES('call','open',1,0.0);
INSERT INTO "tally" VALUES('round','',4,0.0);
INSERT INTO "tally" VALUES('round','1',1,0.0);
INSERT INTO "tally" VALUES('task.edit','failed',1,0.0);
INSERT INTO "tally" VALUES('task.edit','pending',3,0.0);
INSERT INTO "tally" VALUES('task.edit','success',1,0.0);
CREATE TABLE task(
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, image_id TEXT NOT NULL,
  modality TEXT NOT NULL, finding TEXT NOT NULL, direction TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'pending',
  round INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
INSERT INTO "task" VALUES('1b2093a8607a9147c559','edit','i0','chest_xray','Pneumothorax','add',1,'pending',0,'');
INSERT INTO "task" VALUES('4040976e8d1bccc98fea','edit','i0','chest_xray','Pneumothorax','add',0,'success',1,'');
INSERT INTO "task" VALUES('6989ad6e951c42d6b4cc','edit','i0','chest_xray','Pneumothorax','add',0,'pending',0,'');
INSERT INTO "task" VALUES('a2c1dbe2ea8f3512aed0','edit','i0','chest_xray','Pneumothorax','add',0,'pending',0,'');
INSERT INTO "task" VALUES('ce930cbb48224f0b2990','edit','i0','chest_xray','Pneumothorax','add',0,'failed',2,'');
CREATE TABLE verdict(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
  judge TEXT NOT NULL, draw INTEGER NOT NULL, decisive INTEGER NOT NULL, observations TEXT NOT NULL,
  instruction_compliance INTEGER, structural_plausibility INTEGER, realism INTEGER,
  fidelity_preservation INTEGER,
  has_disease INTEGER NOT NULL, other_disease INTEGER NOT NULL, opinion INTEGER,
  qualified_all_pass INTEGER NOT NULL, qualified_weighted INTEGER NOT NULL,
  score REAL NOT NULL, qualified INTEGER NOT NULL,
  PRIMARY KEY (task, generation, round, judge, draw),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;
INSERT INTO "verdict" VALUES('1b2093a8607a9147c559',0,1,'a',0,0,'{"criteria":{"instruction_compliance":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"structural_plausibility":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"realism":{"passed":false,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"fidelity_preservation":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"}},"has_disease":true,"other_disease":false,"opinion":null,"reason":"the border is sharp"}',1,1,0,1,1,0,NULL,0,1,0.8,1);
INSERT INTO "verdict" VALUES('1b2093a8607a9147c559',0,1,'a',1,0,'{"criteria":{"instruction_compliance":{"passed":false,"confidence":null,"codes":["too_subtle","wrong_location"],"evidence":"x\u0000y \"z\""},"structural_plausibility":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"realism":{"passed":false,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"fidelity_preservation":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"}},"has_disease":false,"other_disease":false,"opinion":true,"reason":"a \"quoted\" line\nand another, \u0000 nul, 🍌"}',0,1,0,1,0,0,1,0,0,0.4,0);
INSERT INTO "verdict" VALUES('1b2093a8607a9147c559',0,1,'panel',0,1,'{"criteria":{"instruction_compliance":{"passed":false,"confidence":0.5,"codes":["too_subtle","wrong_location"],"evidence":"x\u0000y \"z\""},"structural_plausibility":{"passed":true,"confidence":1.0,"codes":["hard_edge"],"evidence":"é | é"},"realism":{"passed":false,"confidence":1.0,"codes":["hard_edge"],"evidence":"é | é"},"fidelity_preservation":{"passed":true,"confidence":1.0,"codes":["hard_edge"],"evidence":"é | é"}},"has_disease":false,"other_disease":false,"opinion":true,"reason":"a: the border is sharp | a: a \"quoted\" line\nand another, \u0000 nul, 🍌"}',0,1,0,1,0,0,1,0,0,0.4,0);
INSERT INTO "verdict" VALUES('4040976e8d1bccc98fea',0,1,'offline/instruments',0,1,'{"criteria":{"instruction_compliance":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"structural_plausibility":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"realism":{"passed":false,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"},"fidelity_preservation":{"passed":true,"confidence":0.5,"codes":["hard_edge"],"evidence":"é"}},"has_disease":true,"other_disease":false,"opinion":null,"reason":"the border is sharp"}',1,1,0,1,1,0,NULL,0,1,0.8,1);
INSERT INTO "verdict" VALUES('ce930cbb48224f0b2990',0,1,'them',0,1,'{"criteria":{"realism":{"passed":true,"confidence":null,"codes":[],"evidence":""},"instruction_compliance":{"passed":false,"confidence":1.0,"codes":[],"evidence":""}},"has_disease":true,"other_disease":true,"opinion":false,"reason":""}',0,NULL,1,NULL,1,1,0,0,0,0.2,0);
INSERT INTO "verdict" VALUES('ce930cbb48224f0b2990',0,2,'them',0,1,'{"criteria":{},"has_disease":false,"other_disease":false,"opinion":null,"reason":"nothing said"}',NULL,NULL,NULL,NULL,0,0,NULL,0,0,0.0,0);
CREATE INDEX task_state ON task(state, id);
CREATE INDEX call_open ON call(id, reserved_usd) WHERE state = 'started';
CREATE INDEX batch_job_open ON batch_job(key) WHERE state <> 'closed';
CREATE INDEX batch_request_call ON batch_request(call);
CREATE INDEX batch_request_job ON batch_request(job);
CREATE TRIGGER task_added AFTER INSERT ON task BEGIN INSERT INTO tally(what, key, n, total) VALUES ('task.' || NEW.kind, NEW.state, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total;INSERT INTO tally(what, key, n, total) VALUES ('round', CASE NEW.state WHEN 'success' THEN CAST(NEW.round AS TEXT) ELSE '' END, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER task_moved AFTER UPDATE OF kind, state, round ON task
  BEGIN INSERT INTO tally(what, key, n, total) VALUES ('task.' || OLD.kind, OLD.state, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total;INSERT INTO tally(what, key, n, total) VALUES ('round', CASE OLD.state WHEN 'success' THEN CAST(OLD.round AS TEXT) ELSE '' END, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; INSERT INTO tally(what, key, n, total) VALUES ('task.' || NEW.kind, NEW.state, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total;INSERT INTO tally(what, key, n, total) VALUES ('round', CASE NEW.state WHEN 'success' THEN CAST(NEW.round AS TEXT) ELSE '' END, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER task_gone AFTER DELETE ON task BEGIN INSERT INTO tally(what, key, n, total) VALUES ('task.' || OLD.kind, OLD.state, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total;INSERT INTO tally(what, key, n, total) VALUES ('round', CASE OLD.state WHEN 'success' THEN CAST(OLD.round AS TEXT) ELSE '' END, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER call_added AFTER INSERT ON call BEGIN INSERT INTO tally(what, key, n, total) VALUES ('call', COALESCE(NEW.outcome, 'open'), 1, COALESCE(NEW.cost_usd, 0)) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER call_moved AFTER UPDATE OF outcome, cost_usd ON call
  BEGIN INSERT INTO tally(what, key, n, total) VALUES ('call', COALESCE(OLD.outcome, 'open'), -1, -COALESCE(OLD.cost_usd, 0)) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; INSERT INTO tally(what, key, n, total) VALUES ('call', COALESCE(NEW.outcome, 'open'), 1, COALESCE(NEW.cost_usd, 0)) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER call_gone AFTER DELETE ON call BEGIN INSERT INTO tally(what, key, n, total) VALUES ('call', COALESCE(OLD.outcome, 'open'), -1, -COALESCE(OLD.cost_usd, 0)) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER attempt_added AFTER INSERT ON attempt BEGIN INSERT INTO tally(what, key, n, total) VALUES ('attempt', CASE NEW.superseded WHEN 0 THEN 'current' ELSE 'superseded' END, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER attempt_moved AFTER UPDATE OF superseded ON attempt
  BEGIN INSERT INTO tally(what, key, n, total) VALUES ('attempt', CASE OLD.superseded WHEN 0 THEN 'current' ELSE 'superseded' END, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; INSERT INTO tally(what, key, n, total) VALUES ('attempt', CASE NEW.superseded WHEN 0 THEN 'current' ELSE 'superseded' END, 1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER attempt_gone AFTER DELETE ON attempt BEGIN INSERT INTO tally(what, key, n, total) VALUES ('attempt', CASE OLD.superseded WHEN 0 THEN 'current' ELSE 'superseded' END, -1, 0) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER blob_added AFTER INSERT ON blob
  BEGIN INSERT INTO tally(what, key, n, total) VALUES ('blob', NEW.media_type, 1, NEW.bytes) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
CREATE TRIGGER blob_gone AFTER DELETE ON blob
  BEGIN INSERT INTO tally(what, key, n, total) VALUES ('blob', OLD.media_type, -1, -OLD.bytes) ON CONFLICT(what, key) DO UPDATE SET n = n + excluded.n, total = total + excluded.total; END;
COMMIT;