// The queue that a packet waits in, and what its DSCP tells the next switch about it.

control Queueing(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                 inout ingress_intrinsic_metadata_for_tm_t for_traffic_manager) {

    // Packets of this level travel on with DSCP bits 5..3 set to this class; bits 2..0 stay.
    @id(ID_ACTION_SET_CLASS)
    action set_class(class_t class) {
        hdr.ipv4.dscp[5:3] = class;
    }

    // Level n travels as class selector n.
    @id(ID_ACTION_SET_CLASS_TO_LEVEL)
    action set_class_to_level() {
        hdr.ipv4.dscp[5:3] = meta.level;
    }

    // Levels whose class is not their own number, for networks that keep CS6 and CS7 for routing protocols. The next
    // switch's `level` table has to know it.
    @id(ID_TABLE_TRAFFIC_CLASS)
    table traffic_class {
        key = { meta.level: exact @name("level"); }
        actions = { set_class; @defaultonly set_class_to_level; }
        const default_action = set_class_to_level();
        size = 8;
    }

    apply {
        traffic_class.apply();
        for_traffic_manager.qid = (QueueId_t) meta.level;
    }
}
