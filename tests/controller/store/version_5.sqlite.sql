-- A database of schema version 5, as the code of that version made it (filling.py).
BEGIN TRANSACTION;
CREATE TABLE call (
    id INTEGER NOT NULL,
    time_s DOUBLE NOT NULL,
    identity TEXT NOT NULL,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    method TEXT NOT NULL,
    subject TEXT NOT NULL,
    outcome TEXT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO "call" VALUES(1,1.0136226968309803453e+02,'gpt''s owner','blue','tenant','RegisterJob','gpt','answered','');
CREATE TABLE drain (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    is_forced BOOLEAN NOT NULL,
    since_s DOUBLE NOT NULL,
    "by" TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);
INSERT INTO "drain" VALUES('switch','a0',0,101.5,'operator');
INSERT INTO "drain" VALUES('link','a1:1 - t0:4',1,102.25,'anyone');
CREATE TABLE fact (
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO "fact" VALUES(1,'job','job-0',1,NULL,'{"arrival_s":100.0,"gpus":16,"profile":[0.17344713191306743,0.26461394848992037,40.82526559017795],"candidates":[null,null,null,null],"groups":[["g",[[167772417,167773185,17,49152,4791,7404903765,0.01,[4,24,33,17],true,false,false,0],[167772418,167773441,17,49152,4791,1673756936,0.01,[6,24,33,21],true,false,false,1],[167772417,167773441,17,49152,4791,3625489736,0.0,[4,26,35,21],true,false,false,2]]],["h",[[167772417,167773185,17,49153,4791,4066203208,0.01,[4,24,33,17],true,false,false,0],[167773442,167772417,17,49152,4791,8520513283,0.01,[22,34,27,5],true,false,false,3],[167772417,167773441,17,49153,4791,2583800135,0.0,[4,24,33,21],true,false,false,2]]]],"measured_hosts":[],"task_graph":"{\"is_guessed\":false,\"tasks\":[[0.04002626121070787,[]],[[0,1,2],[0]],[0.13342087070235956,[0]],[[3,4,5],[1,2]]]}"}');
INSERT INTO "fact" VALUES(2,'order','job-0',1,NULL,'{"rank":0,"level":3,"intensity":14.431684548144196,"correction_factor":1.0,"priority":14.431684548144196,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 14.43 of computation: its priority. It sends most, and the others are compared with it.","flows":[[6,3,0]]}');
INSERT INTO "fact" VALUES(3,'paths','job-0',1,NULL,'[[4,24,33,17],[6,26,35,21],[4,26,35,21],[4,26,35,17],[22,32,25,5],[4,24,33,21]]');
INSERT INTO "fact" VALUES(4,'controller','',1,NULL,'{"topology":{"gpus_per_host":8,"delay_us":1.0,"pcie":null,"nics_per_host":2,"host_link_gbps":100.0,"kind":"clos","tors":3,"aggs":2,"hosts_per_tor":2,"uplink_gbps":100.0,"uplinks_per_pair":1},"hash_seed":1,"policy":"crux","num_levels":4,"seed":1}');
INSERT INTO "fact" VALUES(5,'job','job-1',2,NULL,'{"arrival_s":100.7294252159633,"gpus":16,"profile":[0.8315261385617994,0.3621130931795632,21.514046900675666],"candidates":[null,null,null],"groups":[["g",[[167772929,167772673,17,49152,4791,4640017739,0.01,[12,9],true,false,false,0]]],["h",[[167772673,167772929,17,49152,4791,4274926714,0.01,[8,13],true,false,false,1],[167772930,167772673,17,49152,4791,9817720057,0.01,[14,9],true,false,false,2],[167772929,167772673,17,49153,4791,4285599429,0.0,[12,9],true,false,false,0]]]],"measured_hosts":[]}');
INSERT INTO "fact" VALUES(6,'order','job-1',2,4,'{"rank":1,"level":3,"intensity":7.173898197268492,"correction_factor":1.0004255946570675,"priority":7.176951370011595,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 7.174 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 7.177.","flows":[[4,3,1]]}');
INSERT INTO "fact" VALUES(7,'paths','job-1',2,NULL,'[[12,9],[8,13],[14,9],[12,9]]');
INSERT INTO "fact" VALUES(8,'job','job-2',3,NULL,'{"arrival_s":100.94960326351972,"gpus":16,"profile":[0.5068885752151322,0.6420617360334083,15.539741479928166],"candidates":[null,null,null],"groups":[["g",[[167772417,167773185,17,49154,4791,8388840442,0.0,[4,26,35,17],true,false,false,0]]],["h",[[167772673,167773185,17,49152,4791,4428897763,0.0,[8,28,33,17],true,false,false,1],[167772418,167773185,17,49152,4791,2372479185,0.0,[6,26,35,17],true,false,false,2]]]],"measured_hosts":[],"task_graph":"{\"is_guessed\":false,\"tasks\":[[0.24010511457558897,[]],[[0],[0]],[0.2667834606395432,[0]],[[1,2],[1,2]]]}"}');
INSERT INTO "fact" VALUES(9,'order','job-2',3,4,'{"rank":2,"level":2,"intensity":6.393811342916603,"correction_factor":0.9989936076727178,"priority":6.387376660239002,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 6.394 of computation. To go first is worth 0.999 times as much link time to it as to ''job-0'', which sends most: priority 6.387.","flows":[[3,2,2]]}');
INSERT INTO "fact" VALUES(10,'paths','job-2',3,4,'[[4,26,35,17],[8,28,33,17],[6,24,33,17]]');
INSERT INTO "fact" VALUES(11,'order','job-1',4,NULL,'{"rank":2,"level":1,"intensity":7.173898197268492,"correction_factor":1.0004255946570675,"priority":7.176951370011595,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 7.174 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 7.177.","flows":[[4,1,2]]}');
INSERT INTO "fact" VALUES(12,'order','job-2',4,NULL,'{"rank":3,"level":1,"intensity":6.393811342916603,"correction_factor":0.9989936076727178,"priority":6.387376660239002,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 6.394 of computation. To go first is worth 0.999 times as much link time to it as to ''job-0'', which sends most: priority 6.387.","flows":[[3,1,3]]}');
INSERT INTO "fact" VALUES(13,'paths','job-2',4,NULL,'[[4,24,33,17],[8,30,35,17],[6,26,35,17]]');
INSERT INTO "fact" VALUES(14,'job','job-3',4,NULL,'{"arrival_s":100.95454947154148,"gpus":16,"profile":[0.13645352297315688,0.46374940024575095,18.202020293679244],"candidates":[null,null],"groups":[["g",[[167772673,167772929,17,49153,4791,9253304356,0.01,[8,13],true,false,false,0]]],["h",[[167772417,167772673,17,49152,4791,4091929270,0.01,[4,26,31,9],true,false,false,1]]]],"measured_hosts":[]}');
INSERT INTO "fact" VALUES(15,'order','job-3',4,NULL,'{"rank":1,"level":2,"intensity":12.294270506916769,"correction_factor":1.000093423203819,"priority":12.295419077056142,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 12.29 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 12.3.","flows":[[2,2,1]]}');
INSERT INTO "fact" VALUES(16,'paths','job-3',4,NULL,'[[8,13],[4,26,31,9]]');
CREATE TABLE flow_group (
    job TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    flows TEXT NOT NULL,
    PRIMARY KEY (job, position),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO "flow_group" VALUES('job-0',0,'g','[["h1", 0, "h4", 0, 7404903765, 0.01, 167772417, 167773185, 17, 49152, 4791, true], ["h1", 1, "h5", 0, 1673756936, 0.01, 167772418, 167773441, 17, 49152, 4791, true], ["h1", 0, "h5", 0, 3625489736, 0.0, 167772417, 167773441, 17, 49152, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-0',1,'h','[["h1", 0, "h4", 0, 4066203208, 0.01, 167772417, 167773185, 17, 49153, 4791, true], ["h5", 1, "h1", 0, 8520513283, 0.01, 167773442, 167772417, 17, 49152, 4791, true], ["h1", 0, "h5", 0, 2583800135, 0.0, 167772417, 167773441, 17, 49153, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-1',0,'g','[["h3", 0, "h2", 0, 4640017739, 0.01, 167772929, 167772673, 17, 49152, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-1',1,'h','[["h2", 0, "h3", 0, 4274926714, 0.01, 167772673, 167772929, 17, 49152, 4791, true], ["h3", 1, "h2", 0, 9817720057, 0.01, 167772930, 167772673, 17, 49152, 4791, true], ["h3", 0, "h2", 0, 4285599429, 0.0, 167772929, 167772673, 17, 49153, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-2',0,'g','[["h1", 0, "h4", 0, 8388840442, 0.0, 167772417, 167773185, 17, 49154, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-2',1,'h','[["h2", 0, "h4", 0, 4428897763, 0.0, 167772673, 167773185, 17, 49152, 4791, true], ["h1", 1, "h4", 0, 2372479185, 0.0, 167772418, 167773185, 17, 49152, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-3',0,'g','[["h2", 0, "h3", 0, 9253304356, 0.01, 167772673, 167772929, 17, 49153, 4791, true]]');
INSERT INTO "flow_group" VALUES('job-3',1,'h','[["h1", 0, "h2", 0, 4091929270, 0.01, 167772417, 167772673, 17, 49152, 4791, true]]');
CREATE TABLE instance (
    job TEXT NOT NULL,
    flow_group TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    reference_s DOUBLE NOT NULL,
    has_ended BOOLEAN NOT NULL,
    PRIMARY KEY (job, flow_group),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO "instance" VALUES('job-0','g',7,1.0136226968309803453e+02,0);
CREATE TABLE job (
    name TEXT NOT NULL,
    hosts TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    compute_s DOUBLE,
    comm_start DOUBLE,
    work DOUBLE,
    arrival_s DOUBLE NOT NULL,
    owner_token TEXT NOT NULL,
    tenant TEXT DEFAULT '' NOT NULL,
    num_groups INTEGER,
    PRIMARY KEY (name)
);
INSERT INTO "job" VALUES('job-0','["h1", "h5", "h4"]',16,1.73447131913067431607e-01,2.64613948489920369766e-01,4.0825265590177949094e+01,100.0,'token','',2);
INSERT INTO "job" VALUES('job-1','["h3", "h2", "h0"]',16,8.31526138561799355031e-01,3.62113093179563194645e-01,2.15140469006756660528e+01,1.00729425215963303225e+02,'token','',2);
INSERT INTO "job" VALUES('job-2','["h2", "h1", "h4"]',16,5.06888575215132197726e-01,6.42061736033408325674e-01,1.5539741479928165901e+01,1.00949603263519719579e+02,'token','',2);
INSERT INTO "job" VALUES('job-3','["h2", "h1", "h3"]',16,1.36453522973156882169e-01,4.6374940024575095343e-01,1.82020202936792436787e+01,1.0095454947154148328e+02,'token','',2);
INSERT INTO "job" VALUES('silent','["h1", "h3"]',2,NULL,NULL,NULL,1.0136226968309803453e+02,'token of silent','blue',0);
CREATE TABLE leadership (
    number INTEGER NOT NULL,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    renewals INTEGER NOT NULL,
    lease_s DOUBLE NOT NULL,
    session TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);
INSERT INTO "leadership" VALUES(1,'one',1,0,0.0,'trainyard 00000000.1.1.1');
CREATE TABLE measured (
    job TEXT NOT NULL,
    arrival_s DOUBLE NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO "measured" VALUES('silent',1.0136226968309803453e+02,'[12.5, [1500000000.0, 0.3, 0.2, 30, 1.0], []]');
CREATE TABLE "plan" (
    number INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    time_s DOUBLE NOT NULL,
    PRIMARY KEY (number)
);
INSERT INTO "plan" VALUES(1,0,1.00729425215963303225e+02);
INSERT INTO "plan" VALUES(2,1,1.00949603263519719579e+02);
INSERT INTO "plan" VALUES(3,2,1.0095454947154148328e+02);
INSERT INTO "plan" VALUES(4,3,1.0136226968309803453e+02);
CREATE TABLE property (
    name TEXT NOT NULL,
    value DOUBLE NOT NULL,
    PRIMARY KEY (name)
);
INSERT INTO "property" VALUES('schema_version',5.0);
INSERT INTO "property" VALUES('grace_left_s',0.5);
CREATE TABLE silence (
    job TEXT NOT NULL,
    silent_s DOUBLE NOT NULL,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO "silence" VALUES('job-0',1.5);
INSERT INTO "silence" VALUES('job-1',1.90772021155655124857e+00);
INSERT INTO "silence" VALUES('job-2',1.90772021155655124857e+00);
INSERT INTO "silence" VALUES('job-3',1.90772021155655124857e+00);
INSERT INTO "silence" VALUES('silent',1.5);
CREATE TABLE switch_write (
    id INTEGER NOT NULL,
    time_s DOUBLE NOT NULL,
    "plan" INTEGER NOT NULL,
    switch TEXT NOT NULL,
    inserted INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO "switch_write" VALUES(1,1.0136226968309803453e+02,4,'t0',3,1,2,'refused','table is full');
CREATE TABLE task_graph (
    job TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO "task_graph" VALUES('job-0','{"is_guessed":false,"tasks":[[0.1,[]],[[0,1,2],[0]],[0.3333333333333333,[0]],[[3,4,5],[1,2]]]}');
INSERT INTO "task_graph" VALUES('job-2','{"is_guessed":false,"tasks":[[0.30000000000000004,[]],[[0],[0]],[0.3333333333333333,[0]],[[1,2],[1,2]]]}');
CREATE INDEX fact_until ON fact (until);
CREATE INDEX fact_since ON fact (since);
CREATE INDEX fact_now ON fact (kind, "key", until);
CREATE INDEX ix_switch_write_time_s ON switch_write (time_s);
CREATE INDEX ix_switch_write_plan ON switch_write ("plan");
CREATE INDEX ix_call_time_s ON call (time_s);
COMMIT;
