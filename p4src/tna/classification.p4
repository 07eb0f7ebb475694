// What a packet may claim: its level, and a next hop where the Plan has chosen one.
//
//   level from DSCP, if the ingress port is trusted ─► flow ──hit──► the flow's level, next hop or both
//                                                       └──miss─► job ──hit──► the job's level
//
// A probe takes its flow's next hop but keeps the level of its own DSCP, so that every queue of a path can be sampled.

control Classification(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                       in ingress_intrinsic_metadata_t intrinsic) {

    // ---- port: whose DSCP is believed ----------------------------------------------------------------------------

    // Senders behind this port choose their levels by DSCP.
    @id(ID_ACTION_TRUST)
    action trust() {
        meta.is_trusted = 1;
    }

    // What comes in by this port has level 0, unless flow or job says otherwise.
    @id(ID_ACTION_DISTRUST)
    action distrust() {
        meta.is_trusted = 0;
    }

    // Ports that differ from the default, which is trust and can be changed.
    @id(ID_TABLE_PORT)
    table port {
        key = { intrinsic.ingress_port: exact @name("ingress_port"); }
        actions = { trust; distrust; }
        default_action = trust();
        size = PORTS;
    }

    // ---- flow: the Plan's decision for one flow ------------------------------------------------------------------

    // Packets and bytes of one flow, its probes among them, per entry.
    @id(ID_DIRECT_COUNTER_FLOW)
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) flow_counter;

    // Send the flow to this next hop instead of where the hash would; its level stays that of its DSCP.
    @id(ID_ACTION_STEER)
    action steer(next_hop_t next_hop) {
        meta.next_hop = next_hop;
        flow_counter.count(FCS_BYTES);
    }

    // Let the flow wait at this level; the hash chooses its way. Later switches read the level from the DSCP.
    @id(ID_ACTION_PRIORITISE)
    action prioritise(level_t level) {
        meta.level = level;
        flow_counter.count(FCS_BYTES);
    }

    // Both at once.
    @id(ID_ACTION_STEER_AND_PRIORITISE)
    action steer_and_prioritise(next_hop_t next_hop, level_t level) {
        meta.next_hop = next_hop;
        meta.level = level;
        flow_counter.count(FCS_BYTES);
    }

    // One entry per flow that must not take what routing, its job and its DSCP would give it.
    @id(ID_TABLE_FLOW)
    table flow {
        key = {
            hdr.ipv4.source: exact @name("source_address");
            hdr.ipv4.destination: exact @name("destination_address");
            hdr.ipv4.protocol: exact @name("protocol");
            meta.source_port: exact @name("source_port");
            meta.destination_port: exact @name("destination_port");
        }
        actions = { steer; prioritise; steer_and_prioritise; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter;
        size = FLOW_TABLE_SIZE;
    }

    // ---- job: one level for all flows of a job -------------------------------------------------------------------

    // Packets and bytes of a job's flows that have no entry of their own, probes left out, per entry.
    @id(ID_DIRECT_COUNTER_JOB)
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) job_counter;

    // Let the job's packets wait at this level.
    @id(ID_ACTION_PRIORITISE_JOB)
    action prioritise_job(level_t level) {
        meta.level = level;
        job_counter.count(FCS_BYTES);
    }

    // Which packets belong to which job, by its hosts' addresses, protocol and port; read where `flow` has no entry.
    @id(ID_TABLE_JOB)
    table job {
        key = {
            hdr.ipv4.source: ternary @name("source_address");
            hdr.ipv4.destination: ternary @name("destination_address");
            hdr.ipv4.protocol: ternary @name("protocol");
            meta.destination_port: ternary @name("destination_port");
        }
        actions = { prioritise_job; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = job_counter;
        size = JOB_TABLE_SIZE;
    }

    // ---- level: what the sender or an earlier switch asks for ----------------------------------------------------

    // Packets with this DSCP wait at this level.
    @id(ID_ACTION_SET_LEVEL)
    action set_level(level_t level) {
        meta.level = level;
    }

    // DSCP, its INT bit read as 0, to level; what is not listed has level 0. Read before `flow` and `job`, which
    // override it.
    @id(ID_TABLE_LEVEL)
    table level {
        key = { hdr.ipv4.dscp & DSCP_WITHOUT_INT: exact @name("dscp"); }
        actions = { set_level; }
        const default_action = set_level(0);
        size = 64;
    }

    apply {
        port.apply();
        if (meta.is_trusted == 1) {
            level.apply();
        }
        level_t own_level = meta.level;
        if (flow.apply().miss) {
            if (meta.is_probe == 0) {
                job.apply();
            }
        }
        if (meta.is_probe == 1) {
            meta.level = own_level;
        }
    }
}
