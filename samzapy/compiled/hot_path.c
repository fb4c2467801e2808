/* What runs for each record, in C: the common case only.
 *
 * Each callable here stands for a Python function, its `__wrapped__`, which stays the one complete definition. It does the common case without
 * running Python code, and calls that function, before it has changed anything, for everything else: other types, errors, deletions, limits. So an error is
 * always raised, and worded, by the Python function. tests/unit/compiled runs both side by side.
 *
 * Objects are read at the offsets of their classes' `__slots__`, which are asked for once. Every value that code of the user's might release
 * meanwhile is owned (Py_INCREF) while that code runs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "written for the interpreter with its global lock; without it samzapy runs on its Python functions"
#endif

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static PyObject *s_below, *s_keep, *s_writes, *s_scans, *s_stores, *s_process, *s_ssp, *s_decode_key, *s_decode_value, *s_processed, *s_key;
static PyObject *minus_one, *zero;

/* Where a class keeps the attribute of this name, which must be one of its slots; −1 and an exception if it is none. */
static Py_ssize_t offset_of(PyObject *cls, const char *name) {
    PyObject *found = PyObject_GetAttrString(cls, name);
    Py_ssize_t offset = -1;
    if (found == NULL) return -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type) && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX) {
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    } else {
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", cls, name);
    }
    Py_DECREF(found);
    return offset;
}

static void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value) {
    PyObject *before = SLOT(object, offset);
    SLOT(object, offset) = value;
    Py_XDECREF(before);
}

/* Whether a slot holds the number of this thread. */
static int is_this_thread(PyObject *number) {
    unsigned long own;
    if (number == NULL || !PyLong_CheckExact(number)) return 0;
    own = PyLong_AsUnsignedLong(number);
    if (own == (unsigned long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return own == PyThread_get_thread_ident();
}

/* -- methods ------------------------------------------------------------------------------------------------------------------------ */

/* A callable that is a method when it is an attribute of a class, as a Python function is. `slow`: the Python function that it stands for. */
#define METHOD_HEAD        \
    PyObject_HEAD          \
    vectorcallfunc call;   \
    PyObject *slow, *cls;

typedef struct {
    METHOD_HEAD
} Method;

static PyObject *slowly(void *method, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    return PyObject_Vectorcall(((Method *)method)->slow, args, nargsf, kwnames);
}

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *type) {
    if (object == NULL || object == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, object);
}

/* Name, documentation, signature: those of the Python function. */
static PyObject *method_getattro(PyObject *self, PyObject *name) {
    PyObject *found;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) return Py_NewRef(((Method *)self)->slow);
    if (PyUnicode_CompareWithASCIIString(name, "__doc__") == 0) return PyObject_GetAttr(((Method *)self)->slow, name);
    found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Method *)self)->slow, name);
}

static int method_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Method *)self)->slow);
    Py_VISIT(((Method *)self)->cls);
    return 0;
}

static int method_clear(PyObject *self) {
    Py_CLEAR(((Method *)self)->slow);
    Py_CLEAR(((Method *)self)->cls);
    return 0;
}

static void method_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    (void)Py_TYPE(self)->tp_clear(self);
    Py_TYPE(self)->tp_free(self);
}

#define METHOD_TYPE(name_, struct_, new_)                                                                                          \
    {                                                                                                                              \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "samzapy.compiled._hot_path." name_, .tp_basicsize = sizeof(struct_),             \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,           \
        .tp_vectorcall_offset = offsetof(Method, call), .tp_call = PyVectorcall_Call, .tp_descr_get = method_get,                  \
        .tp_getattro = method_getattro, .tp_traverse = method_traverse, .tp_clear = method_clear, .tp_dealloc = method_dealloc,    \
        .tp_new = new_                                                                                                             \
    }

static void *new_method(PyTypeObject *type, vectorcallfunc call, PyObject *cls, PyObject *slow) {
    Method *self = (Method *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = call;
    self->cls = Py_NewRef(cls);
    self->slow = Py_NewRef(slow);
    return self;
}

/* -- stores ------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    METHOD_HEAD
    PyObject *serde_error;
    Py_ssize_t live, frozen, committed, quick_key, decode_value, newer;
} StoreGet;

static PyObject *store_get(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    StoreGet *m = (StoreGet *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *self, *data, *value, *decoded, *live, *frozen, *newer, *committed;
    if (kwnames != NULL || count < 2 || count > 3 || !PyObject_TypeCheck(args[0], (PyTypeObject *)m->cls) || args[1] == Py_None) {
        return slowly(m, args, nargsf, kwnames);
    }
    self = args[0];
    live = SLOT(self, m->live);
    if (live == NULL || SLOT(self, m->quick_key) == NULL || SLOT(self, m->decode_value) == NULL) return slowly(m, args, nargsf, kwnames);
    data = PyObject_CallOneArg(SLOT(self, m->quick_key), args[1]);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    /* A key serde of the user's ran: the maps are read after it. */
    live = SLOT(self, m->live);
    frozen = SLOT(self, m->frozen);
    committed = SLOT(self, m->committed);
    newer = committed == NULL ? NULL : SLOT(committed, m->newer);
    if (!PyBytes_CheckExact(data) || newer == NULL || !PyDict_CheckExact(live) || !PyDict_CheckExact(newer) || !PyDict_CheckExact(frozen)) {
        Py_DECREF(data);
        return slowly(m, args, nargsf, kwnames);
    }
    value = PyDict_GetItemWithError(live, data);
    if (value == NULL && PyDict_GET_SIZE(frozen) == 0) value = PyDict_GetItemWithError(newer, data);
    if (value == NULL && PyErr_Occurred()) {
        Py_DECREF(data);
        return NULL;
    }
    value = value == NULL ? PyObject_CallMethodOneArg(self, s_below, data) : Py_NewRef(value);
    Py_DECREF(data);
    if (value == NULL) return NULL;
    if (value == Py_None) {
        Py_DECREF(value);
        return Py_NewRef(count == 3 ? args[2] : Py_None);
    }
    decoded = PyObject_CallOneArg(SLOT(self, m->decode_value), value);
    Py_DECREF(value);
    if (decoded == NULL && PyErr_ExceptionMatches(m->serde_error)) {
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    return decoded;
}

static PyObject *store_get_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *cls, *committed, *slow, *serde_error;
    StoreGet *self;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyType_Type, &cls, &PyType_Type, &committed, &slow, &serde_error)) return NULL;
    self = new_method(type, store_get, cls, slow);
    if (self == NULL) return NULL;
    self->serde_error = Py_NewRef(serde_error); /* a class of a module, which lives as long as the process */
    if ((self->live = offset_of(cls, "_live")) < 0 || (self->frozen = offset_of(cls, "_frozen")) < 0 ||
        (self->committed = offset_of(cls, "_committed")) < 0 || (self->quick_key = offset_of(cls, "_quick_key")) < 0 ||
        (self->decode_value = offset_of(cls, "_decode_value")) < 0 || (self->newer = offset_of(committed, "newer")) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject StoreGet_Type = METHOD_TYPE("StoreGet", StoreGet, store_get_new);

typedef struct {
    METHOD_HEAD
    PyObject *absent;
    Py_ssize_t live, writes, bytes, limit, thread, quick_key, encode_value, barrier, order, is_sorted;
} StorePut;

static PyObject *store_put(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    StorePut *m = (StorePut *)callable;
    PyObject *self, *data = NULL, *value = NULL, *live, *writes, *old, *entry, *bytes, *order;
    Py_ssize_t size, limit, grown;
    int is_new, failed;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 3 || !PyObject_TypeCheck(args[0], (PyTypeObject *)m->cls) || args[1] == Py_None ||
        args[2] == Py_None || !is_this_thread(SLOT(args[0], m->thread))) {
        return slowly(m, args, nargsf, kwnames);
    }
    self = args[0];
    if (SLOT(self, m->quick_key) == NULL || SLOT(self, m->encode_value) == NULL) return slowly(m, args, nargsf, kwnames);
    data = PyObject_CallOneArg(SLOT(self, m->quick_key), args[1]);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    value = PyObject_CallOneArg(SLOT(self, m->encode_value), args[2]);
    if (value == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    /* Serdes of the user's ran: the maps are read after them. */
    live = SLOT(self, m->live);
    writes = SLOT(self, m->writes);
    bytes = SLOT(self, m->bytes);
    order = SLOT(self, m->order);
    if (!PyBytes_CheckExact(data) || !PyBytes_CheckExact(value) || live == NULL || !PyDict_CheckExact(live) || writes == NULL ||
        !PyList_CheckExact(writes) || bytes == NULL || order == NULL || SLOT(order, m->is_sorted) != Py_False) {
        goto slow;
    }
    limit = SLOT(self, m->limit) == NULL ? -1 : PyLong_AsSsize_t(SLOT(self, m->limit));
    size = PyBytes_GET_SIZE(data) + PyBytes_GET_SIZE(value);
    if (limit == -1 && PyErr_Occurred()) PyErr_Clear();
    if (size > limit) goto slow;
    grown = PyLong_AsSsize_t(bytes);
    if (grown == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        goto slow;
    }
    old = PyDict_GetItemWithError(live, data);
    if (old == NULL && PyErr_Occurred()) goto failed;
    is_new = old == NULL;
    if (is_new) {
        int is_barrier = PyObject_RichCompareBool(data, SLOT(self, m->barrier), Py_EQ);
        if (is_barrier) goto slow;
        old = m->absent;
        grown += size;
    } else {
        grown += size - PyBytes_GET_SIZE(data) - (old == Py_None ? 0 : PyBytes_GET_SIZE(old));
    }
    /* The old value is recorded before anything changes, so that `undo` can restore it whatever fails after this. */
    bytes = PyLong_FromSsize_t(grown);
    if (bytes == NULL) goto failed;
    entry = PyTuple_Pack(2, data, old);
    if (entry == NULL) {
        Py_DECREF(bytes);
        goto failed;
    }
    failed = PyList_Append(writes, entry);
    Py_DECREF(entry);
    if (failed) {
        Py_DECREF(bytes);
        goto failed;
    }
    set_slot(self, m->bytes, bytes);
    failed = PyDict_SetItem(live, data, value);
    Py_DECREF(data);
    Py_DECREF(value);
    if (failed) return NULL;
    Py_RETURN_NONE;
slow:
    Py_DECREF(data);
    Py_DECREF(value);
    return slowly(m, args, nargsf, kwnames);
failed:
    Py_DECREF(data);
    Py_DECREF(value);
    return NULL;
}

static PyObject *store_put_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *cls, *order, *slow, *absent;
    StorePut *self;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyType_Type, &cls, &PyType_Type, &order, &slow, &absent)) return NULL;
    self = new_method(type, store_put, cls, slow);
    if (self == NULL) return NULL;
    self->absent = Py_NewRef(absent); /* a constant of a module */
    if ((self->live = offset_of(cls, "_live")) < 0 || (self->writes = offset_of(cls, "writes")) < 0 ||
        (self->bytes = offset_of(cls, "_bytes")) < 0 || (self->limit = offset_of(cls, "_limit")) < 0 ||
        (self->thread = offset_of(cls, "_thread")) < 0 || (self->quick_key = offset_of(cls, "_quick_key")) < 0 ||
        (self->encode_value = offset_of(cls, "_encode_value")) < 0 || (self->barrier = offset_of(cls, "_barrier")) < 0 ||
        (self->order = offset_of(cls, "_order")) < 0 || (self->is_sorted = offset_of(order, "is_sorted")) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject StorePut_Type = METHOD_TYPE("StorePut", StorePut, store_put_new);

/* -- sends -------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    METHOD_HEAD
    PyObject *envelope;
    Py_ssize_t overhead, thread, outputs, pending, size;
} Send;

static PyObject *send(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Send *m = (Send *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf), size, limit, sum;
    PyObject *self, *key, *output, *outputs, *pending, *data = NULL, *value = NULL, *record, *total;
    int failed;
    if (count < 3 || count > 4 || !PyObject_TypeCheck(args[0], (PyTypeObject *)m->cls) || args[2] == m->envelope || !PyUnicode_CheckExact(args[1])) {
        return slowly(m, args, nargsf, kwnames);
    }
    key = count == 4 ? args[3] : Py_None;
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0) {
        if (PyTuple_GET_SIZE(kwnames) != 1 || count == 4 || PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, 0), s_key) != 0) {
            return slowly(m, args, nargsf, kwnames);
        }
        key = args[3];
    }
    self = args[0];
    outputs = SLOT(self, m->outputs);
    if (!is_this_thread(SLOT(self, m->thread)) || outputs == NULL || !PyDict_CheckExact(outputs)) return slowly(m, args, nargsf, kwnames);
    output = PyDict_GetItemWithError(outputs, args[1]);
    if (output == NULL) {
        if (PyErr_Occurred()) return NULL;
        return slowly(m, args, nargsf, kwnames);
    }
    /* (spec, topic, quick key encoder, value encoder, limit): the collector keeps it for as long as it lives. */
    if (!PyTuple_CheckExact(output) || PyTuple_GET_SIZE(output) != 5) return slowly(m, args, nargsf, kwnames);
    limit = PyLong_AsSsize_t(PyTuple_GET_ITEM(output, 4));
    if (limit == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    size = m->overhead;
    if (key == Py_None) {
        data = Py_NewRef(Py_None);
    } else {
        data = PyObject_CallOneArg(PyTuple_GET_ITEM(output, 2), key);
        if (data == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
            PyErr_Clear();
            return slowly(m, args, nargsf, kwnames);
        }
        if (!PyBytes_CheckExact(data)) goto slow;
        size += PyBytes_GET_SIZE(data);
    }
    if (args[2] == Py_None) {
        value = Py_NewRef(Py_None);
    } else {
        value = PyObject_CallOneArg(PyTuple_GET_ITEM(output, 3), args[2]);
        if (value == NULL) goto failed;
        if (!PyBytes_CheckExact(value)) goto slow;
        size += PyBytes_GET_SIZE(value);
    }
    pending = SLOT(self, m->pending);
    total = SLOT(self, m->size);
    if (size > limit || pending == NULL || !PyList_CheckExact(pending) || total == NULL) goto slow;
    sum = PyLong_AsSsize_t(total);
    if (sum == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        goto slow;
    }
    total = PyLong_FromSsize_t(sum + size);
    if (total == NULL) goto failed;
    record = PyTuple_Pack(6, PyTuple_GET_ITEM(output, 1), value, data, minus_one, zero, Py_None);
    failed = record == NULL || PyList_Append(pending, record);
    Py_XDECREF(record);
    if (failed) {
        Py_DECREF(total);
        goto failed;
    }
    set_slot(self, m->size, total);
    Py_DECREF(data);
    Py_DECREF(value);
    Py_RETURN_NONE;
slow:
    Py_DECREF(data);
    Py_XDECREF(value);
    return slowly(m, args, nargsf, kwnames);
failed:
    Py_DECREF(data);
    Py_XDECREF(value);
    return NULL;
}

static PyObject *send_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *cls, *slow, *envelope;
    Py_ssize_t overhead;
    Send *self;
    if (!PyArg_ParseTuple(args, "O!OOn", &PyType_Type, &cls, &slow, &envelope, &overhead)) return NULL;
    self = new_method(type, send, cls, slow);
    if (self == NULL) return NULL;
    self->envelope = Py_NewRef(envelope); /* a constant of a module */
    self->overhead = overhead;
    if ((self->thread = offset_of(cls, "_thread")) < 0 || (self->outputs = offset_of(cls, "_outputs")) < 0 ||
        (self->pending = offset_of(cls, "pending")) < 0 || (self->size = offset_of(cls, "_size")) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject Send_Type = METHOD_TYPE("Send", Send, send_new);

/* -- serdes ------------------------------------------------------------------------------------------------------------------------- */

/* A decoder: `function(data)` for bytes of at most `most`; if it raises an Exception, and for all else, `slow(data)`. */
typedef struct {
    METHOD_HEAD
    PyObject *function;
    Py_ssize_t most;
} Decode;

static PyObject *decode(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Decode *m = (Decode *)callable;
    PyObject *decoded;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 1 || !PyBytes_CheckExact(args[0]) || PyBytes_GET_SIZE(args[0]) > m->most) {
        return slowly(m, args, nargsf, kwnames);
    }
    decoded = PyObject_CallOneArg(m->function, args[0]);
    if (decoded != NULL || !PyErr_ExceptionMatches(PyExc_Exception)) return decoded;
    PyErr_Clear();
    return slowly(m, args, nargsf, kwnames);
}

static PyObject *decode_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *function, *slow;
    Py_ssize_t most;
    Decode *self;
    if (!PyArg_ParseTuple(args, "OOn", &function, &slow, &most)) return NULL;
    self = new_method(type, decode, Py_None, slow);
    if (self == NULL) return NULL;
    self->function = Py_NewRef(function);
    self->most = most;
    return (PyObject *)self;
}

static int decode_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Decode *)self)->function);
    return method_traverse(self, visit, arg);
}

static int decode_clear(PyObject *self) {
    Py_CLEAR(((Decode *)self)->function);
    return method_clear(self);
}

static PyTypeObject Decode_Type = METHOD_TYPE("Decode", Decode, decode_new);

/* An encoder to JSON: `function(value)`, copied if `is_copied`. If it raises an Exception, or what it gives has more than `most` bytes or the word
 * null in it (which may stand for a number that JSON does not have), and for what does not fit, `slow(value)`. What fits: an object of the
 * very class `cls`, if there is one, each of whose `names` is of one of its `types`. */
typedef struct {
    METHOD_HEAD
    PyObject *function, *names, *types;
    Py_ssize_t most;
    int is_copied;
} Encode;

static int fits(Encode *m, PyObject *value) {
    Py_ssize_t count, i, j;
    if (m->cls == Py_None) return 1;
    if ((PyObject *)Py_TYPE(value) != m->cls) return 0;
    count = PyTuple_GET_SIZE(m->names);
    for (i = 0; i < count; i++) {
        PyObject *field = PyObject_GetAttr(value, PyTuple_GET_ITEM(m->names, i)), *types = PyTuple_GET_ITEM(m->types, i);
        PyObject *type = (PyObject *)Py_TYPE(field == NULL ? Py_None : field);
        if (field == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
            PyErr_Clear();
            return 0;
        }
        Py_DECREF(field);
        for (j = 0; j < PyTuple_GET_SIZE(types); j++) {
            if (PyTuple_GET_ITEM(types, j) == type) break;
        }
        if (j == PyTuple_GET_SIZE(types)) return 0;
    }
    return 1;
}

static int has_null(const char *text, Py_ssize_t size) {
    const char *at = text, *end = text + size;
    while ((at = memchr(at, 'n', (size_t)(end - at))) != NULL) {
        if (end - at >= 4 && memcmp(at, "null", 4) == 0) return 1;
        at++;
    }
    return 0;
}

static PyObject *encode(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Encode *m = (Encode *)callable;
    PyObject *data, *copy;
    int does_fit;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 1) return slowly(m, args, nargsf, kwnames);
    does_fit = fits(m, args[0]);
    if (does_fit < 0) return NULL;
    if (!does_fit) return slowly(m, args, nargsf, kwnames);
    data = PyObject_CallOneArg(m->function, args[0]);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    if (!PyBytes_CheckExact(data) || PyBytes_GET_SIZE(data) > m->most || has_null(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))) {
        Py_DECREF(data);
        return slowly(m, args, nargsf, kwnames);
    }
    if (!m->is_copied) return data;
    copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data));
    Py_DECREF(data);
    return copy;
}

static PyObject *encode_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *function, *slow, *cls = Py_None, *names = NULL, *types = NULL;
    Py_ssize_t most, i;
    int is_copied;
    Encode *self;
    if (!PyArg_ParseTuple(args, "OOnp|OO!O!", &function, &slow, &most, &is_copied, &cls, &PyTuple_Type, &names, &PyTuple_Type, &types)) return NULL;
    if (cls != Py_None && (types == NULL || PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(types))) {
        PyErr_SetString(PyExc_ValueError, "a class needs the names of its fields, and the types of each");
        return NULL;
    }
    for (i = 0; types != NULL && i < PyTuple_GET_SIZE(types); i++) {
        if (!PyTuple_CheckExact(PyTuple_GET_ITEM(types, i)) || !PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i))) {
            PyErr_SetString(PyExc_TypeError, "a field has a name and a tuple of types");
            return NULL;
        }
    }
    self = new_method(type, encode, cls, slow);
    if (self == NULL) return NULL;
    self->function = Py_NewRef(function);
    self->names = Py_XNewRef(names);
    self->types = Py_XNewRef(types);
    self->most = most;
    self->is_copied = is_copied;
    return (PyObject *)self;
}

static int encode_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Encode *)self)->function);
    Py_VISIT(((Encode *)self)->names);
    Py_VISIT(((Encode *)self)->types);
    return method_traverse(self, visit, arg);
}

static int encode_clear(PyObject *self) {
    Py_CLEAR(((Encode *)self)->function);
    Py_CLEAR(((Encode *)self)->names);
    Py_CLEAR(((Encode *)self)->types);
    return method_clear(self);
}

static PyTypeObject Encode_Type = METHOD_TYPE("Encode", Encode, encode_new);

/* Whole numbers as 8 bytes, big-endian; `flip` is 0x80 where the sign bit is inverted, so that the order of the bytes is that of the numbers. */
typedef struct {
    METHOD_HEAD
    int flip;
} Integer;

static PyObject *encode_integer(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Integer *m = (Integer *)callable;
    unsigned char data[8];
    unsigned long long bits;
    long long number;
    int overflow, i;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 1 || !PyLong_CheckExact(args[0])) return slowly(m, args, nargsf, kwnames);
    number = PyLong_AsLongLongAndOverflow(args[0], &overflow);
    if (overflow) return slowly(m, args, nargsf, kwnames);
    for (bits = (unsigned long long)number, i = 7; i >= 0; i--, bits >>= 8) data[i] = (unsigned char)bits;
    data[0] ^= (unsigned char)m->flip;
    return PyBytes_FromStringAndSize((char *)data, 8);
}

static PyObject *decode_integer(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Integer *m = (Integer *)callable;
    const unsigned char *data;
    unsigned long long bits = 0;
    int i;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 1 || !PyBytes_CheckExact(args[0]) || PyBytes_GET_SIZE(args[0]) != 8) {
        return slowly(m, args, nargsf, kwnames);
    }
    data = (unsigned char *)PyBytes_AS_STRING(args[0]);
    for (i = 0; i < 8; i++) bits = bits << 8 | (i == 0 ? data[0] ^ (unsigned char)m->flip : data[i]);
    return PyLong_FromLongLong((long long)bits);
}

static PyObject *integer_new(PyTypeObject *type, PyObject *args, vectorcallfunc call) {
    PyObject *slow;
    int is_flipped;
    Integer *self;
    if (!PyArg_ParseTuple(args, "Op", &slow, &is_flipped)) return NULL;
    self = new_method(type, call, Py_None, slow);
    if (self != NULL) self->flip = is_flipped ? 0x80 : 0;
    return (PyObject *)self;
}

static PyObject *encode_integer_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    return integer_new(type, args, encode_integer);
}

static PyObject *decode_integer_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    return integer_new(type, args, decode_integer);
}

static PyTypeObject EncodeInteger_Type = METHOD_TYPE("EncodeInteger", Integer, encode_integer_new);
static PyTypeObject DecodeInteger_Type = METHOD_TYPE("DecodeInteger", Integer, decode_integer_new);

/* -- messages ----------------------------------------------------------------------------------------------------------------------- */

enum { KEY, VALUE, PARTITION, TOPIC, ERROR_, PARTS };
static const char *const PART_NAMES[PARTS] = {"key", "value", "partition", "topic", "error"};
static PyObject *part_names[PARTS];

/* The methods without arguments of a class of messages. Those that are written in C are called without a look-up. */
typedef struct {
    PyTypeObject *type;
    PyCFunction of[PARTS]; /* NULL: written in Python, called by name */
} Parts;

static int parts_of(Parts *parts, PyTypeObject *type) {
    int i;
    if (parts->type == type) return 0;
    for (i = 0; i < PARTS; i++) {
        PyObject *found = PyObject_GetAttr((PyObject *)type, part_names[i]);
        if (found == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
            PyErr_Clear(); /* messages in memory are never errors: whoever calls it nevertheless gets this error */
            parts->of[i] = NULL;
            continue;
        }
        parts->of[i] = Py_IS_TYPE(found, &PyMethodDescr_Type) && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
                               ((PyMethodDescrObject *)found)->d_method->ml_flags == METH_NOARGS
                           ? ((PyMethodDescrObject *)found)->d_method->ml_meth
                           : NULL;
        Py_DECREF(found);
    }
    Py_INCREF(type);
    Py_XDECREF(parts->type);
    parts->type = type;
    return 0;
}

static inline PyObject *part(const Parts *parts, PyObject *message, int which) {
    if (parts->of[which] != NULL && Py_IS_TYPE(message, parts->type)) return parts->of[which](message, NULL);
    return PyObject_CallMethodNoArgs(message, part_names[which]);
}

static PyObject *decoded_part(const Parts *parts, PyObject *message, int which, PyObject *decode) {
    PyObject *decoded, *data = part(parts, message, which);
    if (data == NULL || data == Py_None) return data;
    decoded = PyObject_CallOneArg(decode, data);
    Py_DECREF(data);
    return decoded;
}

/* Whether a message is of this topic and partition; where there is no topic yet, its own are taken. −1: an exception. */
static int same_partition(const Parts *parts, PyObject *message, PyObject **topic, long *partition) {
    PyObject *name, *number = part(parts, message, PARTITION);
    long its;
    int is_same;
    if (number == NULL) return -1;
    its = PyLong_AsLong(number);
    Py_DECREF(number);
    if (its == -1 && PyErr_Occurred()) return -1;
    if (*topic != NULL && its != *partition) return 0;
    name = part(parts, message, TOPIC);
    if (name == NULL) return -1;
    if (*topic == NULL) {
        *topic = name;
        *partition = its;
        return 1;
    }
    is_same = PyObject_RichCompareBool(name, *topic, Py_EQ);
    Py_DECREF(name);
    return is_same;
}

/* An envelope of a message; a new reference. */
static PyObject *envelope_of(const Parts *parts, PyObject *message, PyObject *make, PyObject *ssp, PyObject *decode_key, PyObject *decode_value) {
    PyObject *envelope, *arguments[5] = {NULL, NULL, NULL, ssp, message};
    if ((arguments[1] = decoded_part(parts, message, KEY, decode_key)) == NULL) return NULL;
    if ((arguments[2] = decoded_part(parts, message, VALUE, decode_value)) == NULL) {
        Py_DECREF(arguments[1]);
        return NULL;
    }
    envelope = PyObject_Vectorcall(make, arguments + 1, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(arguments[1]);
    Py_DECREF(arguments[2]);
    return envelope;
}

/* -- the loop ----------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *collector, *pending, *requests, *now, *make, *refuse;
    Py_ssize_t kept, asked, index, release_records;
    int is_monotonic;
    Parts parts;
} HotLoop;

static int is_time(HotLoop *self, double look_at) {
    PyObject *now;
    double seconds;
    if (self->is_monotonic) { /* what time.monotonic() does */
        struct timespec at;
        if (clock_gettime(CLOCK_MONOTONIC, &at) == 0) return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec >= look_at;
    }
    now = PyObject_CallNoArgs(self->now);
    if (now == NULL) return -1;
    seconds = PyFloat_AsDouble(now);
    Py_DECREF(now);
    if (seconds == -1.0 && PyErr_Occurred()) return -1;
    return seconds >= look_at;
}

/* What a hook that returned wrote stays: as `store.keep()`, without a call where nothing was scanned. `marks`: writes, scans, store, of each. */
static int keep(PyObject **marks, Py_ssize_t stores) {
    Py_ssize_t i;
    for (i = 0; i < stores; i++) {
        PyObject *writes = marks[3 * i], *scans = marks[3 * i + 1];
        if (PyList_GET_SIZE(scans) > 0) {
            PyObject *kept = PyObject_CallMethodNoArgs(marks[3 * i + 2], s_keep);
            if (kept == NULL) return -1;
            Py_DECREF(kept);
        } else if (PyList_GET_SIZE(writes) > 0 && PyList_SetSlice(writes, 0, PyList_GET_SIZE(writes), NULL)) {
            return -1;
        }
    }
    return 0;
}

static int marks_of(PyObject *stores, PyObject **marks, Py_ssize_t count) {
    Py_ssize_t i;
    for (i = 0; i < count; i++) {
        PyObject *store = PyTuple_GET_ITEM(stores, i);
        marks[3 * i] = PyObject_GetAttr(store, s_writes);
        marks[3 * i + 1] = PyObject_GetAttr(store, s_scans);
        marks[3 * i + 2] = Py_NewRef(store);
        if (marks[3 * i] == NULL || marks[3 * i + 1] == NULL) return -1;
        if (!PyList_CheckExact(marks[3 * i]) || !PyList_CheckExact(marks[3 * i + 1])) {
            PyErr_SetString(PyExc_TypeError, "writes and scans of a store are lists");
            return -1;
        }
    }
    return 0;
}

/* Adds to a task input's count of processed records, beside an exception that may be set. */
static int add_processed(PyObject *task_input, Py_ssize_t records) {
    PyObject *type, *value, *trace, *before = NULL, *more = NULL, *sum = NULL;
    int failed;
    if (records == 0) return 0;
    PyErr_Fetch(&type, &value, &trace);
    failed = (before = PyObject_GetAttr(task_input, s_processed)) == NULL || (more = PyLong_FromSsize_t(records)) == NULL ||
             (sum = PyNumber_Add(before, more)) == NULL || PyObject_SetAttr(task_input, s_processed, sum);
    Py_XDECREF(before);
    Py_XDECREF(more);
    Py_XDECREF(sum);
    if (type != NULL) {
        PyErr_Restore(type, value, trace);
        return 0;
    }
    return failed;
}

/* (task input, batch, begin, end, look at): gives records of one partition to the task, from `begin` on, until one is of another, one fails, or something
 * may be due between two records. Returns the index after the last one; if one fails, `index` is that one's. */
static PyObject *hot_loop(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    HotLoop *self = (HotLoop *)callable;
    PyObject *task_input, *batch, *process = NULL, *ssp = NULL, *decode_key = NULL, *decode_value = NULL, *stores = NULL, *topic = NULL;
    PyObject **marks = NULL, *few[3 * 8] = {NULL}, *kept;
    Py_ssize_t begin, end, i, count = 0, records = 0, waiting = -1;
    long partition = -1;
    double look_at;
    int failed = 1, is_due;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 5 || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "the loop takes a task input, a list of messages, begin, end, and when to look");
        return NULL;
    }
    task_input = args[0];
    batch = args[1];
    begin = PyLong_AsSsize_t(args[2]);
    end = PyLong_AsSsize_t(args[3]);
    look_at = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    if (begin < 0 || end > PyList_GET_SIZE(batch) || begin >= end) {
        PyErr_SetString(PyExc_IndexError, "the loop takes at least one record of the batch");
        return NULL;
    }
    i = self->index = begin;
    if ((process = PyObject_GetAttr(task_input, s_process)) == NULL || (ssp = PyObject_GetAttr(task_input, s_ssp)) == NULL ||
        (decode_key = PyObject_GetAttr(task_input, s_decode_key)) == NULL ||
        (decode_value = PyObject_GetAttr(task_input, s_decode_value)) == NULL || (stores = PyObject_GetAttr(task_input, s_stores)) == NULL) {
        goto done;
    }
    if (!PyTuple_CheckExact(stores)) {
        PyErr_SetString(PyExc_TypeError, "stores of a task input are a tuple");
        goto done;
    }
    count = PyTuple_GET_SIZE(stores);
    marks = count <= 8 ? few : PyMem_Calloc((size_t)(3 * count), sizeof(PyObject *));
    if (marks == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (marks_of(stores, marks, count) || parts_of(&self->parts, Py_TYPE(PyList_GET_ITEM(batch, begin)))) goto done;
    for (; i < end && i < PyList_GET_SIZE(batch); i++) {
        PyObject *message = Py_NewRef(PyList_GET_ITEM(batch, i)), *arguments[4] = {NULL}, *returned;
        int is_same = same_partition(&self->parts, message, &topic, &partition);
        if (is_same < 0) self->index = i;
        if (is_same < 1) {
            Py_DECREF(message);
            failed = is_same < 0;
            goto done;
        }
        self->index = i;
        arguments[1] = envelope_of(&self->parts, message, self->make, ssp, decode_key, decode_value);
        Py_DECREF(message);
        if (arguments[1] == NULL) goto done;
        arguments[2] = self->collector;
        arguments[3] = self->requests;
        returned = PyObject_Vectorcall(process, arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(arguments[1]);
        if (returned == NULL) goto done;
        if (returned != Py_None) {
            PyObject *refused = PyObject_CallFunction(self->refuse, "sO", "process", returned);
            Py_DECREF(returned);
            if (refused == NULL) goto done;
            Py_DECREF(refused);
        } else {
            Py_DECREF(returned);
        }
        if (keep(marks, count)) goto done;
        waiting = PyList_GET_SIZE(self->pending);
        records++;
        if (SLOT(self->requests, self->asked) != Py_False || waiting >= self->release_records) {
            i++;
            break;
        }
        is_due = is_time(self, look_at);
        if (is_due < 0) {
            self->index = i + 1; /* this one is done with */
            goto done;
        }
        if (is_due) {
            i++;
            break;
        }
    }
    failed = 0;
done:
    if (waiting >= 0) {
        kept = PyLong_FromSsize_t(waiting); /* small, or from the free list; without memory for it the container cannot go on */
        if (kept == NULL) failed = 1;
        else set_slot(self->collector, self->kept, kept);
    }
    if (add_processed(task_input, records)) failed = 1;
    Py_XDECREF(process);
    Py_XDECREF(ssp);
    Py_XDECREF(decode_key);
    Py_XDECREF(decode_value);
    Py_XDECREF(stores);
    Py_XDECREF(topic);
    if (marks != NULL) {
        Py_ssize_t m;
        for (m = 0; m < 3 * count; m++) Py_XDECREF(marks[m]);
        if (marks != few) PyMem_Free(marks);
    }
    return failed ? NULL : PyLong_FromSsize_t(i);
}

static PyObject *hot_loop_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *collector, *requests, *now, *make, *refuse, *pending;
    Py_ssize_t kept, asked, release_records;
    int is_monotonic;
    HotLoop *self;
    if (!PyArg_ParseTuple(args, "OOOpOOn", &collector, &requests, &now, &is_monotonic, &make, &refuse, &release_records)) return NULL;
    if ((kept = offset_of((PyObject *)Py_TYPE(collector), "kept")) < 0 || (asked = offset_of((PyObject *)Py_TYPE(requests), "pending")) < 0) return NULL;
    pending = PyObject_GetAttrString(collector, "pending");
    if (pending == NULL) return NULL;
    if (!PyList_CheckExact(pending)) {
        Py_DECREF(pending);
        PyErr_SetString(PyExc_TypeError, "what waits in a collector is a list");
        return NULL;
    }
    self = (HotLoop *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_DECREF(pending);
        return NULL;
    }
    self->call = hot_loop;
    self->collector = Py_NewRef(collector);
    self->pending = pending;
    self->requests = Py_NewRef(requests);
    self->now = Py_NewRef(now);
    self->make = Py_NewRef(make);
    self->refuse = Py_NewRef(refuse);
    self->kept = kept;
    self->asked = asked;
    self->release_records = release_records;
    self->is_monotonic = is_monotonic;
    return (PyObject *)self;
}

static int hot_loop_traverse(PyObject *object, visitproc visit, void *arg) {
    HotLoop *self = (HotLoop *)object;
    Py_VISIT(self->collector);
    Py_VISIT(self->pending);
    Py_VISIT(self->requests);
    Py_VISIT(self->now);
    Py_VISIT(self->make);
    Py_VISIT(self->refuse);
    Py_VISIT(self->parts.type);
    return 0;
}

static int hot_loop_clear(PyObject *object) {
    HotLoop *self = (HotLoop *)object;
    Py_CLEAR(self->collector);
    Py_CLEAR(self->pending);
    Py_CLEAR(self->requests);
    Py_CLEAR(self->now);
    Py_CLEAR(self->make);
    Py_CLEAR(self->refuse);
    Py_CLEAR(self->parts.type);
    return 0;
}

static PyMemberDef hot_loop_members[] = {
    {"index", T_PYSSIZET, offsetof(HotLoop, index), READONLY, "the index of the record under way in its batch"},
    {NULL},
};

static PyTypeObject HotLoop_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "samzapy.compiled._hot_path.HotLoop",
    .tp_basicsize = sizeof(HotLoop),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(HotLoop, call),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = hot_loop_traverse,
    .tp_clear = hot_loop_clear,
    .tp_dealloc = method_dealloc,
    .tp_members = hot_loop_members,
    .tp_new = hot_loop_new,
};

/* -- functions ---------------------------------------------------------------------------------------------------------------------- */

static Parts batch_parts; /* of the class of messages that was seen last */

static PyObject *envelopes(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    PyObject *made, *records;
    Py_ssize_t i, size;
    if (count != 5 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "envelopes takes a list of messages, a class, a partition and two decoders");
        return NULL;
    }
    records = args[0];
    size = PyList_GET_SIZE(records);
    made = PyList_New(size);
    if (made == NULL) return NULL;
    if (size && parts_of(&batch_parts, Py_TYPE(PyList_GET_ITEM(records, 0)))) goto failed;
    for (i = 0; i < size; i++) {
        PyObject *message, *envelope;
        if (PyList_GET_SIZE(records) != size) {
            PyErr_SetString(PyExc_RuntimeError, "the list of messages changed while it was read");
            goto failed;
        }
        message = Py_NewRef(PyList_GET_ITEM(records, i));
        envelope = envelope_of(&batch_parts, message, args[1], args[2], args[3], args[4]);
        Py_DECREF(message);
        if (envelope == NULL) goto failed;
        PyList_SET_ITEM(made, i, envelope);
    }
    return made;
failed:
    Py_DECREF(made);
    return NULL;
}

/* in_a_row(batch, begin, end): the index after the records from `begin` on that are of the same partition. */
static PyObject *in_a_row(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    PyObject *batch, *topic = NULL;
    Py_ssize_t begin, end, i;
    long partition = -1;
    if (count != 3 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "in_a_row takes a list of messages, begin and end");
        return NULL;
    }
    batch = args[0];
    begin = PyLong_AsSsize_t(args[1]);
    end = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (begin < 0 || begin >= PyList_GET_SIZE(batch)) {
        PyErr_SetString(PyExc_IndexError, "in_a_row begins at a record of the batch");
        return NULL;
    }
    if (parts_of(&batch_parts, Py_TYPE(PyList_GET_ITEM(batch, begin)))) return NULL;
    for (i = begin; i < end && i < PyList_GET_SIZE(batch); i++) {
        PyObject *message = Py_NewRef(PyList_GET_ITEM(batch, i));
        int is_same = same_partition(&batch_parts, message, &topic, &partition);
        Py_DECREF(message);
        if (is_same < 0) {
            Py_XDECREF(topic);
            return NULL;
        }
        if (!is_same) break;
    }
    Py_XDECREF(topic);
    return PyLong_FromSsize_t(i);
}

static PyObject *has_error(PyObject *module, PyObject *batch) {
    Py_ssize_t i;
    if (!PyList_CheckExact(batch)) {
        PyErr_SetString(PyExc_TypeError, "has_error takes a list of messages");
        return NULL;
    }
    if (PyList_GET_SIZE(batch) && parts_of(&batch_parts, Py_TYPE(PyList_GET_ITEM(batch, 0)))) return NULL;
    for (i = 0; i < PyList_GET_SIZE(batch); i++) {
        PyObject *error = part(&batch_parts, PyList_GET_ITEM(batch, i), ERROR_);
        if (error == NULL) return NULL;
        Py_DECREF(error);
        if (error != Py_None) Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

/* produce_all(produce, records, timed, refusals): how many records `produce` took, before it raised one of `refusals`. */
static PyObject *produce_all(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    PyObject *produce, *records, *timed, *refusals;
    Py_ssize_t i;
    if (count != 4 || !PyList_CheckExact(args[1]) || !PySet_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "produce_all takes a function, a list of records, a set of topics and classes of exceptions");
        return NULL;
    }
    produce = args[0];
    records = args[1];
    timed = args[2];
    refusals = args[3];
    for (i = 0; i < PyList_GET_SIZE(records); i++) {
        PyObject *record = PyList_GET_ITEM(records, i), *arguments = NULL, *done, *time, *headers;
        int has_time, has_headers;
        if (!PyTuple_CheckExact(record) || PyTuple_GET_SIZE(record) != 6) {
            PyErr_SetString(PyExc_TypeError, "a record is (topic, value, key, partition, time, headers)");
            return NULL;
        }
        time = PyTuple_GET_ITEM(record, 4);
        headers = PyTuple_GET_ITEM(record, 5);
        has_time = time == zero ? 0 : PyObject_IsTrue(time);
        has_headers = headers == Py_None ? 0 : PyObject_IsTrue(headers);
        if (has_time < 0 || has_headers < 0) return NULL;
        Py_INCREF(record);
        if (!has_time && !has_headers) {
            arguments = PyTuple_GetSlice(record, 0, 4);
        } else {
            PyObject *pairs = has_headers ? PySequence_List(headers) : Py_NewRef(Py_None);
            if (pairs != NULL && (!has_time || PySet_Add(timed, PyTuple_GET_ITEM(record, 0)) == 0)) {
                arguments = PyTuple_Pack(8, PyTuple_GET_ITEM(record, 0), PyTuple_GET_ITEM(record, 1), PyTuple_GET_ITEM(record, 2),
                                         PyTuple_GET_ITEM(record, 3), Py_None, Py_None, time, pairs);
            }
            Py_XDECREF(pairs);
        }
        Py_DECREF(record);
        if (arguments == NULL) return NULL;
        done = PyObject_Call(produce, arguments, NULL);
        Py_DECREF(arguments);
        if (done == NULL) {
            if (!PyErr_ExceptionMatches(refusals)) return NULL;
            PyErr_Clear();
            break;
        }
        Py_DECREF(done);
    }
    return PyLong_FromSsize_t(i);
}

static PyMethodDef functions[] = {
    {"envelopes", (PyCFunction)(void (*)(void))envelopes, METH_FASTCALL, "envelopes(records, make, ssp, decode_key, decode_value): one of each record."},
    {"in_a_row", (PyCFunction)(void (*)(void))in_a_row, METH_FASTCALL, "in_a_row(batch, begin, end): the index after the records of one partition."},
    {"has_error", has_error, METH_O, "has_error(batch): whether a message of the client stands for an error."},
    {"produce_all", (PyCFunction)(void (*)(void))produce_all, METH_FASTCALL, "produce_all(produce, records, timed, refusals): how many were taken."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "samzapy.compiled._hot_path", .m_doc = "What runs for each record; see hot_path.c.", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__hot_path(void) {
    PyObject *module;
    int i;
    PyTypeObject *types[] = {&StoreGet_Type, &StorePut_Type, &Send_Type, &Decode_Type, &Encode_Type, &EncodeInteger_Type, &DecodeInteger_Type, &HotLoop_Type};
    struct {
        PyObject **at;
        const char *text;
    } names[] = {{&s_below, "_below"}, {&s_keep, "keep"}, {&s_writes, "writes"}, {&s_scans, "scans"}, {&s_stores, "stores"},
                 {&s_process, "process"}, {&s_ssp, "ssp"}, {&s_decode_key, "decode_key"}, {&s_decode_value, "decode_value"},
                 {&s_processed, "processed"}, {&s_key, "key"}};
    Decode_Type.tp_traverse = decode_traverse;
    Decode_Type.tp_clear = decode_clear;
    Encode_Type.tp_traverse = encode_traverse;
    Encode_Type.tp_clear = encode_clear;
    if ((minus_one = PyLong_FromLong(-1)) == NULL || (zero = PyLong_FromLong(0)) == NULL) return NULL;
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
