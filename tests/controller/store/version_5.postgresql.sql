-- A database of schema version 5, as the code of that version made it (filling.py).
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.call (
    id bigint NOT NULL,
    time_s double precision NOT NULL,
    identity text NOT NULL,
    tenant text NOT NULL,
    role text NOT NULL,
    method text NOT NULL,
    subject text NOT NULL,
    outcome text NOT NULL,
    problem text NOT NULL
);
CREATE SEQUENCE public.call_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.call_id_seq OWNED BY public.call.id;
CREATE TABLE public.drain (
    kind text NOT NULL,
    name text NOT NULL,
    is_forced boolean NOT NULL,
    since_s double precision NOT NULL,
    by text NOT NULL
);
CREATE TABLE public.fact (
    id bigint NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    since integer NOT NULL,
    until integer,
    body text NOT NULL
);
CREATE SEQUENCE public.fact_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.fact_id_seq OWNED BY public.fact.id;
CREATE TABLE public.flow_group (
    job text NOT NULL,
    "position" integer NOT NULL,
    name text NOT NULL,
    flows text NOT NULL
);
CREATE TABLE public.instance (
    job text NOT NULL,
    flow_group text NOT NULL,
    iteration bigint NOT NULL,
    reference_s double precision NOT NULL,
    has_ended boolean NOT NULL
);
CREATE TABLE public.job (
    name text NOT NULL,
    hosts text NOT NULL,
    gpus integer NOT NULL,
    compute_s double precision,
    comm_start double precision,
    work double precision,
    arrival_s double precision NOT NULL,
    owner_token text NOT NULL,
    tenant text DEFAULT ''::text NOT NULL,
    num_groups integer
);
CREATE TABLE public.leadership (
    number integer NOT NULL,
    holder text NOT NULL,
    term integer NOT NULL,
    renewals integer NOT NULL,
    lease_s double precision NOT NULL,
    session text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.measured (
    job text NOT NULL,
    arrival_s double precision NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.plan (
    number integer NOT NULL,
    previous integer NOT NULL,
    time_s double precision NOT NULL
);
CREATE TABLE public.property (
    name text NOT NULL,
    value double precision NOT NULL
);
CREATE TABLE public.silence (
    job text NOT NULL,
    silent_s double precision NOT NULL
);
CREATE TABLE public.switch_write (
    id bigint NOT NULL,
    time_s double precision NOT NULL,
    plan integer NOT NULL,
    switch text NOT NULL,
    inserted integer NOT NULL,
    modified integer NOT NULL,
    deleted integer NOT NULL,
    outcome text NOT NULL,
    problem text NOT NULL
);
CREATE SEQUENCE public.switch_write_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.switch_write_id_seq OWNED BY public.switch_write.id;
CREATE TABLE public.task_graph (
    job text NOT NULL,
    body text NOT NULL
);
ALTER TABLE ONLY public.call ALTER COLUMN id SET DEFAULT nextval('public.call_id_seq'::regclass);
ALTER TABLE ONLY public.fact ALTER COLUMN id SET DEFAULT nextval('public.fact_id_seq'::regclass);
ALTER TABLE ONLY public.switch_write ALTER COLUMN id SET DEFAULT nextval('public.switch_write_id_seq'::regclass);
INSERT INTO public.call VALUES (1, 101.36226968309803, 'gpt''s owner', 'blue', 'tenant', 'RegisterJob', 'gpt', 'answered', '');
INSERT INTO public.drain VALUES ('switch', 'a0', false, 101.5, 'operator');
INSERT INTO public.drain VALUES ('link', 'a1:1 - t0:4', true, 102.25, 'anyone');
INSERT INTO public.fact VALUES (1, 'job', 'job-0', 1, NULL, '{"arrival_s":100.0,"gpus":16,"profile":[0.17344713191306743,0.26461394848992037,40.82526559017795],"candidates":[null,null,null,null],"groups":[["g",[[167772417,167773185,17,49152,4791,7404903765,0.01,[4,24,33,17],true,false,false,0],[167772418,167773441,17,49152,4791,1673756936,0.01,[6,24,33,21],true,false,false,1],[167772417,167773441,17,49152,4791,3625489736,0.0,[4,26,35,21],true,false,false,2]]],["h",[[167772417,167773185,17,49153,4791,4066203208,0.01,[4,24,33,17],true,false,false,0],[167773442,167772417,17,49152,4791,8520513283,0.01,[22,34,27,5],true,false,false,3],[167772417,167773441,17,49153,4791,2583800135,0.0,[4,24,33,21],true,false,false,2]]]],"measured_hosts":[],"task_graph":"{\"is_guessed\":false,\"tasks\":[[0.04002626121070787,[]],[[0,1,2],[0]],[0.13342087070235956,[0]],[[3,4,5],[1,2]]]}"}');
INSERT INTO public.fact VALUES (2, 'order', 'job-0', 1, NULL, '{"rank":0,"level":3,"intensity":14.431684548144196,"correction_factor":1.0,"priority":14.431684548144196,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 14.43 of computation: its priority. It sends most, and the others are compared with it.","flows":[[6,3,0]]}');
INSERT INTO public.fact VALUES (3, 'paths', 'job-0', 1, NULL, '[[4,24,33,17],[6,26,35,21],[4,26,35,21],[4,26,35,17],[22,32,25,5],[4,24,33,21]]');
INSERT INTO public.fact VALUES (4, 'controller', '', 1, NULL, '{"topology":{"gpus_per_host":8,"delay_us":1.0,"pcie":null,"nics_per_host":2,"host_link_gbps":100.0,"kind":"clos","tors":3,"aggs":2,"hosts_per_tor":2,"uplink_gbps":100.0,"uplinks_per_pair":1},"hash_seed":1,"policy":"crux","num_levels":4,"seed":1}');
INSERT INTO public.fact VALUES (5, 'job', 'job-1', 2, NULL, '{"arrival_s":100.7294252159633,"gpus":16,"profile":[0.8315261385617994,0.3621130931795632,21.514046900675666],"candidates":[null,null,null],"groups":[["g",[[167772929,167772673,17,49152,4791,4640017739,0.01,[12,9],true,false,false,0]]],["h",[[167772673,167772929,17,49152,4791,4274926714,0.01,[8,13],true,false,false,1],[167772930,167772673,17,49152,4791,9817720057,0.01,[14,9],true,false,false,2],[167772929,167772673,17,49153,4791,4285599429,0.0,[12,9],true,false,false,0]]]],"measured_hosts":[]}');
INSERT INTO public.fact VALUES (7, 'paths', 'job-1', 2, NULL, '[[12,9],[8,13],[14,9],[12,9]]');
INSERT INTO public.fact VALUES (8, 'job', 'job-2', 3, NULL, '{"arrival_s":100.94960326351972,"gpus":16,"profile":[0.5068885752151322,0.6420617360334083,15.539741479928166],"candidates":[null,null,null],"groups":[["g",[[167772417,167773185,17,49154,4791,8388840442,0.0,[4,26,35,17],true,false,false,0]]],["h",[[167772673,167773185,17,49152,4791,4428897763,0.0,[8,28,33,17],true,false,false,1],[167772418,167773185,17,49152,4791,2372479185,0.0,[6,26,35,17],true,false,false,2]]]],"measured_hosts":[],"task_graph":"{\"is_guessed\":false,\"tasks\":[[0.24010511457558897,[]],[[0],[0]],[0.2667834606395432,[0]],[[1,2],[1,2]]]}"}');
INSERT INTO public.fact VALUES (6, 'order', 'job-1', 2, 4, '{"rank":1,"level":3,"intensity":7.173898197268492,"correction_factor":1.0004255946570675,"priority":7.176951370011595,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 7.174 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 7.177.","flows":[[4,3,1]]}');
INSERT INTO public.fact VALUES (9, 'order', 'job-2', 3, 4, '{"rank":2,"level":2,"intensity":6.393811342916603,"correction_factor":0.9989936076727178,"priority":6.387376660239002,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 6.394 of computation. To go first is worth 0.999 times as much link time to it as to ''job-0'', which sends most: priority 6.387.","flows":[[3,2,2]]}');
INSERT INTO public.fact VALUES (10, 'paths', 'job-2', 3, 4, '[[4,26,35,17],[8,28,33,17],[6,24,33,17]]');
INSERT INTO public.fact VALUES (11, 'order', 'job-1', 4, NULL, '{"rank":2,"level":1,"intensity":7.173898197268492,"correction_factor":1.0004255946570675,"priority":7.176951370011595,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 7.174 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 7.177.","flows":[[4,1,2]]}');
INSERT INTO public.fact VALUES (12, 'order', 'job-2', 4, NULL, '{"rank":3,"level":1,"intensity":6.393811342916603,"correction_factor":0.9989936076727178,"priority":6.387376660239002,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 6.394 of computation. To go first is worth 0.999 times as much link time to it as to ''job-0'', which sends most: priority 6.387.","flows":[[3,1,3]]}');
INSERT INTO public.fact VALUES (13, 'paths', 'job-2', 4, NULL, '[[4,24,33,17],[8,30,35,17],[6,26,35,17]]');
INSERT INTO public.fact VALUES (14, 'job', 'job-3', 4, NULL, '{"arrival_s":100.95454947154148,"gpus":16,"profile":[0.13645352297315688,0.46374940024575095,18.202020293679244],"candidates":[null,null],"groups":[["g",[[167772673,167772929,17,49153,4791,9253304356,0.01,[8,13],true,false,false,0]]],["h",[[167772417,167772673,17,49152,4791,4091929270,0.01,[4,26,31,9],true,false,false,1]]]],"measured_hosts":[]}');
INSERT INTO public.fact VALUES (15, 'order', 'job-3', 4, NULL, '{"rank":1,"level":2,"intensity":12.294270506916769,"correction_factor":1.000093423203819,"priority":12.295419077056142,"time_shift_s":null,"reason":"Each second on its bottleneck link feeds 12.29 of computation. To go first is worth 1 times as much link time to it as to ''job-0'', which sends most: priority 12.3.","flows":[[2,2,1]]}');
INSERT INTO public.fact VALUES (16, 'paths', 'job-3', 4, NULL, '[[8,13],[4,26,31,9]]');
INSERT INTO public.flow_group VALUES ('job-0', 0, 'g', '[["h1", 0, "h4", 0, 7404903765, 0.01, 167772417, 167773185, 17, 49152, 4791, true], ["h1", 1, "h5", 0, 1673756936, 0.01, 167772418, 167773441, 17, 49152, 4791, true], ["h1", 0, "h5", 0, 3625489736, 0.0, 167772417, 167773441, 17, 49152, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-0', 1, 'h', '[["h1", 0, "h4", 0, 4066203208, 0.01, 167772417, 167773185, 17, 49153, 4791, true], ["h5", 1, "h1", 0, 8520513283, 0.01, 167773442, 167772417, 17, 49152, 4791, true], ["h1", 0, "h5", 0, 2583800135, 0.0, 167772417, 167773441, 17, 49153, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-1', 0, 'g', '[["h3", 0, "h2", 0, 4640017739, 0.01, 167772929, 167772673, 17, 49152, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-1', 1, 'h', '[["h2", 0, "h3", 0, 4274926714, 0.01, 167772673, 167772929, 17, 49152, 4791, true], ["h3", 1, "h2", 0, 9817720057, 0.01, 167772930, 167772673, 17, 49152, 4791, true], ["h3", 0, "h2", 0, 4285599429, 0.0, 167772929, 167772673, 17, 49153, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-2', 0, 'g', '[["h1", 0, "h4", 0, 8388840442, 0.0, 167772417, 167773185, 17, 49154, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-2', 1, 'h', '[["h2", 0, "h4", 0, 4428897763, 0.0, 167772673, 167773185, 17, 49152, 4791, true], ["h1", 1, "h4", 0, 2372479185, 0.0, 167772418, 167773185, 17, 49152, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-3', 0, 'g', '[["h2", 0, "h3", 0, 9253304356, 0.01, 167772673, 167772929, 17, 49153, 4791, true]]');
INSERT INTO public.flow_group VALUES ('job-3', 1, 'h', '[["h1", 0, "h2", 0, 4091929270, 0.01, 167772417, 167772673, 17, 49152, 4791, true]]');
INSERT INTO public.instance VALUES ('job-0', 'g', 7, 101.36226968309803, false);
INSERT INTO public.job VALUES ('job-0', '["h1", "h5", "h4"]', 16, 0.17344713191306743, 0.26461394848992037, 40.82526559017795, 100, 'token', '', 2);
INSERT INTO public.job VALUES ('job-1', '["h3", "h2", "h0"]', 16, 0.8315261385617994, 0.3621130931795632, 21.514046900675666, 100.7294252159633, 'token', '', 2);
INSERT INTO public.job VALUES ('job-2', '["h2", "h1", "h4"]', 16, 0.5068885752151322, 0.6420617360334083, 15.539741479928166, 100.94960326351972, 'token', '', 2);
INSERT INTO public.job VALUES ('job-3', '["h2", "h1", "h3"]', 16, 0.13645352297315688, 0.46374940024575095, 18.202020293679244, 100.95454947154148, 'token', '', 2);
INSERT INTO public.job VALUES ('silent', '["h1", "h3"]', 2, NULL, NULL, NULL, 101.36226968309803, 'token of silent', 'blue', 0);
INSERT INTO public.leadership VALUES (1, 'one', 1, 0, 0, 'trainyard 00000000.1.1.1');
INSERT INTO public.measured VALUES ('silent', 101.36226968309803, '[12.5, [1500000000.0, 0.3, 0.2, 30, 1.0], []]');
INSERT INTO public.plan VALUES (1, 0, 100.7294252159633);
INSERT INTO public.plan VALUES (2, 1, 100.94960326351972);
INSERT INTO public.plan VALUES (3, 2, 100.95454947154148);
INSERT INTO public.plan VALUES (4, 3, 101.36226968309803);
INSERT INTO public.property VALUES ('schema_version', 5);
INSERT INTO public.property VALUES ('grace_left_s', 0.5);
INSERT INTO public.silence VALUES ('job-0', 1.5);
INSERT INTO public.silence VALUES ('job-1', 1.9077202115565512);
INSERT INTO public.silence VALUES ('job-2', 1.9077202115565512);
INSERT INTO public.silence VALUES ('job-3', 1.9077202115565512);
INSERT INTO public.silence VALUES ('silent', 1.5);
INSERT INTO public.switch_write VALUES (1, 101.36226968309803, 4, 't0', 3, 1, 2, 'refused', 'table is full');
INSERT INTO public.task_graph VALUES ('job-0', '{"is_guessed":false,"tasks":[[0.1,[]],[[0,1,2],[0]],[0.3333333333333333,[0]],[[3,4,5],[1,2]]]}');
INSERT INTO public.task_graph VALUES ('job-2', '{"is_guessed":false,"tasks":[[0.30000000000000004,[]],[[0],[0]],[0.3333333333333333,[0]],[[1,2],[1,2]]]}');
SELECT pg_catalog.setval('public.call_id_seq', 1, true);
SELECT pg_catalog.setval('public.fact_id_seq', 16, true);
SELECT pg_catalog.setval('public.switch_write_id_seq', 1, true);
ALTER TABLE ONLY public.call
    ADD CONSTRAINT call_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.drain
    ADD CONSTRAINT drain_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY public.fact
    ADD CONSTRAINT fact_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.flow_group
    ADD CONSTRAINT flow_group_pkey PRIMARY KEY (job, "position");
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (job, flow_group);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.leadership
    ADD CONSTRAINT leadership_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.measured
    ADD CONSTRAINT measured_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.property
    ADD CONSTRAINT property_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.silence
    ADD CONSTRAINT silence_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.switch_write
    ADD CONSTRAINT switch_write_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.task_graph
    ADD CONSTRAINT task_graph_pkey PRIMARY KEY (job);
CREATE INDEX fact_now ON public.fact USING btree (kind, key, until);
CREATE INDEX fact_since ON public.fact USING btree (since);
CREATE INDEX fact_until ON public.fact USING btree (until);
CREATE INDEX ix_call_time_s ON public.call USING btree (time_s);
CREATE INDEX ix_switch_write_plan ON public.switch_write USING btree (plan);
CREATE INDEX ix_switch_write_time_s ON public.switch_write USING btree (time_s);
ALTER TABLE ONLY public.flow_group
    ADD CONSTRAINT flow_group_job_fkey FOREIGN KEY (job) REFERENCES public.job(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT instance_job_fkey FOREIGN KEY (job) REFERENCES public.job(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.measured
    ADD CONSTRAINT measured_job_fkey FOREIGN KEY (job) REFERENCES public.job(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.silence
    ADD CONSTRAINT silence_job_fkey FOREIGN KEY (job) REFERENCES public.job(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_graph
    ADD CONSTRAINT task_graph_job_fkey FOREIGN KEY (job) REFERENCES public.job(name) ON DELETE CASCADE;
