/* The hot loop (container/hot_loop.py). */
#include "method.h"

#include <time.h>

static PyObject *s_keep, *s_writes, *s_scans, *s_stores, *s_process, *s_ssp, *s_decode_key, *s_decode_value, *s_processed;

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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "samzapy.native._hot_path.HotLoop",
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
