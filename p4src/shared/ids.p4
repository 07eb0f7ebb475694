// P4Runtime ids: part of the contract with controllers. An id is never reused for something else.
// Next free: table 0x0200000D, action 0x01000011, profile 0x11000002, direct counter 0x13000003, counter 0x12000004,
// meter 0x14000002, register 0x16000004, controller header 0x04000003.

#ifndef TRAINYARD_IDS_P4
#define TRAINYARD_IDS_P4

#define ID_TABLE_NODE                    0x02000001
#define ID_TABLE_FLOW                    0x02000002
#define ID_TABLE_LEVEL                   0x02000003
#define ID_TABLE_ROUTING                 0x02000004
#define ID_TABLE_NEXT_HOP                0x02000005
#define ID_TABLE_PORT                    0x02000006
#define ID_TABLE_JOB                     0x02000007
#define ID_TABLE_TRAFFIC_CLASS           0x02000008
#define ID_TABLE_ECN                     0x02000009
#define ID_TABLE_UTILISATION_WINDOW      0x0200000A
#define ID_TABLE_MTU                     0x0200000B
#define ID_TABLE_NODE_ID                 0x0200000C

#define ID_ACTION_SET_NODE               0x01000001
#define ID_ACTION_STEER                  0x01000002
#define ID_ACTION_PRIORITISE             0x01000003
#define ID_ACTION_STEER_AND_PRIORITISE   0x01000004
#define ID_ACTION_SET_LEVEL              0x01000005
#define ID_ACTION_SET_NEXT_HOP           0x01000006
#define ID_ACTION_FORWARD                0x01000007
#define ID_ACTION_TRUST                  0x01000008
#define ID_ACTION_DISTRUST               0x01000009
#define ID_ACTION_PRIORITISE_JOB         0x0100000A
#define ID_ACTION_SET_CLASS              0x0100000B
#define ID_ACTION_SET_CLASS_TO_LEVEL     0x0100000C
#define ID_ACTION_MARK_FROM              0x0100000D
#define ID_ACTION_SET_WINDOW             0x0100000E
#define ID_ACTION_SET_MTU                0x0100000F
#define ID_ACTION_SET_NODE_ID            0x01000010

#define ID_PROFILE_ECMP                  0x11000001
#define ID_COUNTER_LEVEL                 0x12000001
#define ID_COUNTER_DROP                  0x12000002
#define ID_COUNTER_NOT_INT               0x12000003
#define ID_DIRECT_COUNTER_FLOW           0x13000001
#define ID_DIRECT_COUNTER_JOB            0x13000002

#define ID_METER_PACKET_IN               0x14000001

#define ID_REGISTER_WINDOW               0x16000001
#define ID_REGISTER_WINDOW_BYTES         0x16000002
#define ID_REGISTER_LAST_WINDOW_BYTES    0x16000003

#define ID_PACKET_IN                     0x04000001
#define ID_PACKET_OUT                    0x04000002

#endif
