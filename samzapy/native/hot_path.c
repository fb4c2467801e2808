/* What runs for each record, in C: the common case only.
 *
 * Each callable here stands for a Python function, its `__wrapped__`, which stays the one complete definition. It does the common case without
 * running Python code, and calls that function, before it has changed anything, for everything else: other types, errors, deletions, limits. So an error is
 * always raised, and worded, by the Python function. tests/unit/native runs both side by side. One file includes the others: they are compiled together.
 *
 * Objects are read at the offsets of their classes' `__slots__`, which are asked for once. Every value that code of the user's might release
 * meanwhile is owned (Py_INCREF) while that code runs.
 */
#include "serdes.c"
#include "flat.c"
#include "stores.c"
#include "sends.c"
#include "messages.c"
#include "hot_loop.c"

static PyMethodDef functions[] = {
    {"envelopes", (PyCFunction)(void (*)(void))envelopes, METH_FASTCALL, "envelopes(records, make, ssp, decode_key, decode_value): one of each record."},
    {"fill_envelopes", fill_envelopes, METH_O, "fill_envelopes(cls): from now on envelopes of this class are made without a call."},
    {"in_a_row", (PyCFunction)(void (*)(void))in_a_row, METH_FASTCALL, "in_a_row(batch, begin, end): the index after the records of one partition."},
    {"flat", (PyCFunction)(void (*)(void))flat, METH_FASTCALL, "flat(value, most): a dict as stores keep it; None: it is encoded at once instead."},
    {"has_error", has_error, METH_O, "has_error(batch): whether a message of the client stands for an error."},
    {"produce_all", (PyCFunction)(void (*)(void))produce_all, METH_FASTCALL, "produce_all(produce, records, timed, refusals): how many were taken."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "samzapy.native._hot_path", .m_doc = "What runs for each record; see hot_path.c.", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__hot_path(void) {
    PyObject *module;
    int i;
    PyTypeObject *types[] = {&Flat_Type, &StoreGet_Type, &StorePut_Type, &Send_Type, &Decode_Type, &Encode_Type, &EncodeInteger_Type, &DecodeInteger_Type, &HotLoop_Type};
    struct {
        PyObject **at;
        const char *text;
    } names[] = {{&s_below, "_below"}, {&s_get, "get"}, {&s_turn, "_turn"}, {&s_keep, "keep"}, {&s_writes, "writes"}, {&s_scans, "scans"}, {&s_stores, "stores"},
                 {&s_process, "process"}, {&s_ssp, "ssp"}, {&s_decode_key, "decode_key"}, {&s_decode_value, "decode_value"},
                 {&s_processed, "processed"}, {&s_key, "key"}};
    Decode_Type.tp_traverse = decode_traverse;
    Decode_Type.tp_clear = decode_clear;
    Encode_Type.tp_traverse = encode_traverse;
    Encode_Type.tp_clear = encode_clear;
    if ((minus_one = PyLong_FromLong(-1)) == NULL || (zero = PyLong_FromLong(0)) == NULL) return NULL;
    if ((same_bytes = PyObject_GetAttrString((PyObject *)&PyBytes_Type, "__bytes__")) == NULL) return NULL;
    if ((bytes_decode = PyObject_GetAttrString((PyObject *)&PyBytes_Type, "decode")) == NULL) return NULL;
    if ((str_encode = PyObject_GetAttrString((PyObject *)&PyUnicode_Type, "encode")) == NULL) return NULL;
    for (i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if ((*names[i].at = PyUnicode_InternFromString(names[i].text)) == NULL) return NULL;
    }
    for (i = 0; i < PARTS; i++) {
        if ((part_names[i] = PyUnicode_InternFromString(PART_NAMES[i])) == NULL) return NULL;
    }
    module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddStringConstant(module, "SOURCE", SOURCE)) return NULL;
    for (i = 0; i < (int)(sizeof types / sizeof types[0]); i++) {
        if (PyModule_AddType(module, types[i])) return NULL;
    }
    return module;
}
