-- A database of schema version 2, as the code of that version made it.
CREATE TABLE fact (
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX fact_now ON fact (kind, "key", until);
CREATE INDEX fact_since ON fact (since);
CREATE INDEX fact_until ON fact (until);
INSERT INTO fact (kind, key, since, "until", body) VALUES ('job', 'gpt', 1, NULL, '{"arrival_s":100.0,"gpus":16,"profile":[1.0,0.5,16.0],"candidates":[null,null],"groups":[["ring",[[167772161,167772674,17,49152,4791,1000000000,0.0,[0,24,29,11],true,false,false,0],[167772674,167772161,17,49152,4791,1000000000,0.01,[10,28,25,1],true,false,false,1]]]],"measured_hosts":[]}');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('order', 'gpt', 1, NULL, '{"rank":0,"level":3,"intensity":100.0,"correction_factor":1.0,"priority":100.0,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 100 of computation: its priority. It sends most, and the others are compared with it.","flows":[[2,3,0]]}');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('paths', 'gpt', 1, NULL, '[[0,24,29,11],[10,28,25,1]]');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('job', 'silent', 1, NULL, '{"arrival_s":100.0,"gpus":2,"profile":[0.0,0.0,0.0],"candidates":[],"groups":[],"measured_hosts":["h1","h3"]}');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('order', 'silent', 1, NULL, '{"rank":1,"level":3,"intensity":null,"correction_factor":null,"priority":null,"time_shift_s":null,"reason":"It sends nothing, so no path and no level can help it.","flows":[]}');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('paths', 'silent', 1, NULL, '[]');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('controller', '', 1, NULL, '{"topology":{"gpus_per_host":8,"delay_us":1.0,"pcie":null,"nics_per_host":2,"host_link_gbps":100.0,"kind":"clos","tors":3,"aggs":2,"hosts_per_tor":2,"uplink_gbps":100.0,"uplinks_per_pair":1},"hash_seed":1,"policy":"crux","num_levels":4,"seed":1}');
INSERT INTO fact (kind, key, since, "until", body) VALUES ('open_groups', '', 1, NULL, '[["gpt","ring",7,100.0,2000000000]]');
CREATE TABLE job (
    name TEXT NOT NULL,
    hosts TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    compute_s DOUBLE,
    comm_start DOUBLE,
    work DOUBLE,
    arrival_s DOUBLE NOT NULL,
    owner_token TEXT NOT NULL,
    PRIMARY KEY (name)
);
INSERT INTO job (name, hosts, gpus, compute_s, comm_start, work, arrival_s, owner_token) VALUES ('gpt', '["h0", "h2"]', 16, 1.0, 0.5, 16.0, 100.0, 'token of gpt');
INSERT INTO job (name, hosts, gpus, compute_s, comm_start, work, arrival_s, owner_token) VALUES ('silent', '["h1", "h3"]', 2, NULL, NULL, NULL, 100.0, 'token of silent');
CREATE TABLE leadership (
    number INTEGER NOT NULL,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    renewals INTEGER NOT NULL,
    lease_s DOUBLE NOT NULL,
    PRIMARY KEY (number)
);
INSERT INTO leadership (number, holder, term, renewals, lease_s) VALUES (1, 'one', 4, 2, 0.0);
CREATE TABLE "plan" (
    number INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    time_s DOUBLE NOT NULL,
    PRIMARY KEY (number)
);
INSERT INTO plan (number, previous, time_s) VALUES (1, 0, 101.0);
CREATE TABLE property (
    name TEXT NOT NULL,
    value DOUBLE NOT NULL,
    PRIMARY KEY (name)
);
INSERT INTO property (name, value) VALUES ('schema_version', 2.0);
INSERT INTO property (name, value) VALUES ('complete_from_s', 102.0);
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
CREATE INDEX ix_switch_write_plan ON switch_write ("plan");
CREATE INDEX ix_switch_write_time_s ON switch_write (time_s);
INSERT INTO switch_write (time_s, plan, switch, inserted, modified, deleted, outcome, problem) VALUES (101.0, 1, 't0', 3, 0, 1, 'acknowledged', '');
CREATE TABLE flow_group (
    job TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    flows TEXT NOT NULL,
    PRIMARY KEY (job, position),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO flow_group (job, position, name, flows) VALUES ('gpt', 0, 'ring', '[["h0", 0, "h2", 1, 1000000000, 0.0, 167772161, 167772674, 17, 49152, 4791, true], ["h2", 1, "h0", 0, 1000000000, 0.01, 167772674, 167772161, 17, 49152, 4791, true]]');
CREATE TABLE instance (
    job TEXT NOT NULL,
    flow_group TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    reference_s DOUBLE NOT NULL,
    has_ended BOOLEAN NOT NULL,
    PRIMARY KEY (job, flow_group),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO instance (job, flow_group, iteration, reference_s, has_ended) VALUES ('gpt', 'ring', 7, 100.0, 0);
CREATE TABLE measured (
    job TEXT NOT NULL,
    arrival_s DOUBLE NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
CREATE TABLE silence (
    job TEXT NOT NULL,
    silent_s DOUBLE NOT NULL,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES job (name) ON DELETE CASCADE
);
INSERT INTO silence (job, silent_s) VALUES ('gpt', 1.0);
INSERT INTO silence (job, silent_s) VALUES ('silent', 1.0);
