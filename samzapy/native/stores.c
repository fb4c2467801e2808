/* OverlayStore.get and .put (store/overlay.py). */
#include "method.h"

static PyObject *s_below, *s_get, *s_turn;

/* Bytes of a value of the live overlay: at most, where it is a flat dict. */
static Py_ssize_t size_of_value(PyObject *value) {
    if (value == Py_None) return 0;
    return Py_IS_TYPE(value, &Flat_Type) ? ((Flat *)value)->bytes : PyBytes_GET_SIZE(value);
}

typedef struct {
    METHOD_HEAD
    PyObject *serde_error;
    Py_ssize_t entry_bytes, live, frozen, committed, cache, quick_key, decode_value, thread, barrier, engine, newer, older, young, old, room;
} StoreGet;

/* ReadCache.add of a key that is not in the young generation. −1: an exception. */
static int add_to_cache(const StoreGet *m, PyObject *cache, PyObject *data, PyObject *value) {
    Py_ssize_t size = m->entry_bytes + PyBytes_GET_SIZE(data) + (value == Py_None ? 0 : PyBytes_GET_SIZE(value));
    PyObject *young = SLOT(cache, m->young), *turned;
    if (add_to(cache, m->room, -size) || PyDict_SetItem(young, data, value)) return -1;
    if (PyLong_AsSsize_t(SLOT(cache, m->room)) >= 0) return 0;
    turned = PyObject_CallMethodNoArgs(cache, s_turn);
    Py_XDECREF(turned);
    return turned == NULL ? -1 : 0;
}

/* The value of a key that no map in memory has: OverlayStore._from_engine. A new reference. */
static PyObject *from_engine(const StoreGet *m, PyObject *self, PyObject *cache, PyObject *data) {
    PyObject *engine = SLOT(self, m->engine), *barrier = SLOT(self, m->barrier), *value;
    int is_barrier = barrier == NULL ? 1 : PyObject_RichCompareBool(data, barrier, Py_EQ);
    if (is_barrier < 0) return NULL;
    if (is_barrier || engine == NULL || engine == Py_None || !is_this_thread(SLOT(self, m->thread))) return PyObject_CallMethodOneArg(self, s_below, data);
    Py_INCREF(engine); /* it runs Python code, which may close the store */
    Py_INCREF(cache);
    value = PyObject_CallMethodOneArg(engine, s_get, data);
    if (value != NULL && value != Py_None && !PyBytes_CheckExact(value)) {
        Py_SETREF(value, PyObject_CallMethodOneArg(self, s_below, data));
    } else if (value != NULL && add_to_cache(m, cache, data, value)) {
        Py_CLEAR(value);
    }
    Py_DECREF(engine);
    Py_DECREF(cache);
    return value;
}

/* The value of a key, a new reference: the first of the maps in memory that has it, or the engine. NULL: an exception. */
static PyObject *value_of(const StoreGet *m, PyObject *self, PyObject *data) {
    PyObject *committed = SLOT(self, m->committed), *cache = SLOT(self, m->cache), *value;
    if (committed != NULL && cache != NULL) {
        PyObject *maps[6] = {SLOT(self, m->live), SLOT(self, m->frozen), SLOT(committed, m->newer), SLOT(committed, m->older), SLOT(cache, m->young),
                             SLOT(cache, m->old)};
        int i;
        for (i = 0; i < 6 && maps[i] != NULL && PyDict_CheckExact(maps[i]); i++) {
            if (PyDict_GET_SIZE(maps[i]) == 0) continue;
            value = PyDict_GetItemWithError(maps[i], data);
            if (value == NULL && PyErr_Occurred()) return NULL;
            if (value == NULL) continue;
            if (i == 5 && value != Py_None && !PyBytes_CheckExact(value)) break;
            Py_INCREF(value);
            if (i == 5 && add_to_cache(m, cache, data, value)) Py_CLEAR(value); /* it was asked for lately: it stays when the generation turns */
            return value;
        }
        if (i == 6) return from_engine(m, self, cache, data);
    }
    return PyObject_CallMethodOneArg(self, s_below, data); /* it looks in all of them, or says what is wrong */
}

static PyObject *store_get(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    StoreGet *m = (StoreGet *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *self, *data, *value, *decoded;
    if (kwnames != NULL || count < 2 || count > 3 || !PyObject_TypeCheck(args[0], (PyTypeObject *)m->cls) || args[1] == Py_None) {
        return slowly(m, args, nargsf, kwnames);
    }
    self = args[0];
    if (SLOT(self, m->live) == NULL || SLOT(self, m->quick_key) == NULL || SLOT(self, m->decode_value) == NULL) return slowly(m, args, nargsf, kwnames);
    data = call_serde(SLOT(self, m->quick_key), args[1]);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    if (!PyBytes_CheckExact(data)) {
        Py_DECREF(data);
        return slowly(m, args, nargsf, kwnames);
    }
    value = value_of(m, self, data);
    Py_DECREF(data);
    if (value == NULL) return NULL;
    if (value == Py_None) {
        Py_DECREF(value);
        return Py_NewRef(count == 3 ? args[2] : Py_None);
    }
    decoded = Py_IS_TYPE(value, &Flat_Type) ? dict_of((Flat *)value) : call_serde(SLOT(self, m->decode_value), value);
    Py_DECREF(value);
    if (decoded == NULL && PyErr_ExceptionMatches(m->serde_error)) {
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    return decoded;
}

static PyObject *store_get_new(PyTypeObject *type, PyObject *args, PyObject *kwds) {
    PyObject *cls, *committed, *cache, *slow, *serde_error;
    Py_ssize_t entry_bytes;
    StoreGet *self;
    if (!PyArg_ParseTuple(args, "O!O!O!OOn", &PyType_Type, &cls, &PyType_Type, &committed, &PyType_Type, &cache, &slow, &serde_error, &entry_bytes)) {
        return NULL;
    }
    self = new_method(type, store_get, cls, slow);
    if (self == NULL) return NULL;
    self->serde_error = Py_NewRef(serde_error); /* a class of a module, which lives as long as the process */
    self->entry_bytes = entry_bytes;
    if ((self->live = offset_of(cls, "_live")) < 0 || (self->frozen = offset_of(cls, "_frozen")) < 0 ||
        (self->committed = offset_of(cls, "_committed")) < 0 || (self->quick_key = offset_of(cls, "_quick_key")) < 0 ||
        (self->decode_value = offset_of(cls, "_decode_value")) < 0 || (self->cache = offset_of(cls, "_cache")) < 0 ||
        (self->newer = offset_of(committed, "newer")) < 0 || (self->older = offset_of(committed, "older")) < 0 ||
        (self->young = offset_of(cache, "_young")) < 0 || (self->old = offset_of(cache, "_old")) < 0 || (self->room = offset_of(cache, "_room")) < 0 ||
        (self->thread = offset_of(cls, "_thread")) < 0 || (self->barrier = offset_of(cls, "_barrier")) < 0 ||
        (self->engine = offset_of(cls, "_engine")) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject StoreGet_Type = METHOD_TYPE("StoreGet", StoreGet, store_get_new);

typedef struct {
    METHOD_HEAD
    PyObject *absent;
    Py_ssize_t live, writes, bytes, limit, thread, quick_key, encode_value, barrier, order, is_sorted, max_flat;
} StorePut;

/* A value as a flat dict; NULL without an exception: it is encoded at once. */
static Flat *kept_flat(const StorePut *m, PyObject *self, PyObject *data, PyObject *value, Py_ssize_t limit) {
    PyObject *live = SLOT(self, m->live), *max_flat = SLOT(self, m->max_flat);
    if (!PyDict_CheckExact(value) || live == NULL || !PyDict_CheckExact(live) || max_flat == NULL || !PyLong_CheckExact(max_flat)) return NULL;
    if (PyDict_GET_SIZE(live) >= PyLong_AsSsize_t(max_flat)) return NULL;
    return flat_of(value, limit - PyBytes_GET_SIZE(data));
}

static PyObject *store_put(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    StorePut *m = (StorePut *)callable;
    PyObject *self, *data = NULL, *value = NULL, *live, *writes, *old, *entry, *order;
    Py_ssize_t size, limit, grown = 0;
    int has_failed;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 3 || !PyObject_TypeCheck(args[0], (PyTypeObject *)m->cls) || args[1] == Py_None ||
        args[2] == Py_None || !is_this_thread(SLOT(args[0], m->thread))) {
        return slowly(m, args, nargsf, kwnames);
    }
    self = args[0];
    if (SLOT(self, m->quick_key) == NULL || SLOT(self, m->encode_value) == NULL) return slowly(m, args, nargsf, kwnames);
    data = call_serde(SLOT(self, m->quick_key), args[1]);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
        PyErr_Clear();
        return slowly(m, args, nargsf, kwnames);
    }
    if (!PyBytes_CheckExact(data)) goto slow;
    limit = SLOT(self, m->limit) == NULL ? -1 : PyLong_AsSsize_t(SLOT(self, m->limit));
    if (limit == -1 && PyErr_Occurred()) PyErr_Clear();
    value = (PyObject *)kept_flat(m, self, data, args[2], limit);
    if (value == NULL) {
        value = PyErr_Occurred() ? NULL : call_serde(SLOT(self, m->encode_value), args[2]);
        if (value == NULL) goto failed;
        if (!PyBytes_CheckExact(value)) goto slow;
    }
    /* Serdes of the user's ran: the maps are read after them. */
    live = SLOT(self, m->live);
    writes = SLOT(self, m->writes);
    order = SLOT(self, m->order);
    if (live == NULL || !PyDict_CheckExact(live) || writes == NULL ||
        !PyList_CheckExact(writes) || order == NULL || SLOT(order, m->is_sorted) != Py_False) {
        goto slow;
    }
    limit = SLOT(self, m->limit) == NULL ? -1 : PyLong_AsSsize_t(SLOT(self, m->limit)); /* a serde may have closed the store */
    if (limit == -1 && PyErr_Occurred()) PyErr_Clear();
    size = PyBytes_GET_SIZE(data) + size_of_value(value);
    if (size > limit) goto slow;
    old = PyDict_GetItemWithError(live, data);
    if (old == NULL) {
        int is_barrier = PyErr_Occurred() ? -1 : PyObject_RichCompareBool(data, SLOT(self, m->barrier), Py_EQ);
        if (is_barrier < 0) goto failed;
        if (is_barrier) goto slow;
        old = m->absent;
    } else {
        grown = PyBytes_GET_SIZE(data) + size_of_value(old);
    }
    /* The old value is recorded before anything changes, so that `undo` can restore it whatever fails after this. */
    Py_INCREF(live); /* making a tuple may collect garbage, and so run any code */
    Py_INCREF(writes);
    Py_INCREF(old);
    entry = PyTuple_Pack(2, data, old);
    Py_DECREF(old);
    has_failed = entry == NULL || PyList_Append(writes, entry);
    Py_XDECREF(entry);
    Py_DECREF(writes);
    if (!has_failed) has_failed = add_to(self, m->bytes, size - grown) || PyDict_SetItem(live, data, value);
    Py_DECREF(live);
    if (has_failed) goto failed;
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
        (self->order = offset_of(cls, "_order")) < 0 || (self->max_flat = offset_of(cls, "_max_flat")) < 0 || (self->is_sorted = offset_of(order, "is_sorted")) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject StorePut_Type = METHOD_TYPE("StorePut", StorePut, store_put_new);
