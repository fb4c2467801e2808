/* Collector.send (container/collector.py), and what the producers do with many records (kafka/sending.py). */
#include "method.h"

static PyObject *s_key, *minus_one, *zero;

typedef struct {
    METHOD_HEAD
    PyObject *envelope;
    Py_ssize_t overhead, thread, outputs, pending, size;
} Send;

static PyObject *send(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Send *m = (Send *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf), size, limit;
    PyObject *self, *key, *output, *outputs, *pending, *data = NULL, *value = NULL, *record;
    int has_failed;
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
        data = call_serde(PyTuple_GET_ITEM(output, 2), key);
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
        value = call_serde(PyTuple_GET_ITEM(output, 3), args[2]);
        if (value == NULL) goto failed;
        if (!PyBytes_CheckExact(value)) goto slow;
        size += PyBytes_GET_SIZE(value);
    }
    pending = SLOT(self, m->pending);
    if (size > limit || pending == NULL || !PyList_CheckExact(pending)) goto slow;
    Py_INCREF(pending); /* making a tuple may collect garbage, and so run any code */
    record = PyTuple_Pack(6, PyTuple_GET_ITEM(output, 1), value, data, minus_one, zero, Py_None);
    has_failed = record == NULL || PyList_Append(pending, record) || add_to(self, m->size, size);
    Py_XDECREF(record);
    Py_DECREF(pending);
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

/* (topic, value, key, partition) of a record, as a new reference: `*kept`, refilled for one record after the other unless somebody holds it. */
static PyObject *first_four(PyObject **kept, PyObject *record) {
    Py_ssize_t i;
    if (*kept == NULL || Py_REFCNT(*kept) != 1) {
        Py_XSETREF(*kept, PyTuple_GetSlice(record, 0, 4));
        return Py_XNewRef(*kept);
    }
    for (i = 0; i < 4; i++) {
        PyObject *before = PyTuple_GET_ITEM(*kept, i);
        PyTuple_SET_ITEM(*kept, i, Py_NewRef(PyTuple_GET_ITEM(record, i)));
        Py_DECREF(before);
    }
    return Py_NewRef(*kept);
}

/* produce_all(produce, records, timed, refusals): how many records `produce` took, before it raised one of `refusals`. */
static PyObject *produce_all(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    PyObject *produce, *records, *timed, *refusals, *kept = NULL;
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
            goto failed;
        }
        Py_INCREF(record);
        time = PyTuple_GET_ITEM(record, 4);
        headers = PyTuple_GET_ITEM(record, 5);
        has_time = time == zero ? 0 : PyObject_IsTrue(time);
        has_headers = headers == Py_None ? 0 : PyObject_IsTrue(headers);
        if (has_time < 0 || has_headers < 0) {
            Py_DECREF(record);
            goto failed;
        }
        if (!has_time && !has_headers) {
            arguments = first_four(&kept, record);
        } else {
            PyObject *pairs = has_headers ? PySequence_List(headers) : Py_NewRef(Py_None);
            if (pairs != NULL && (!has_time || PySet_Add(timed, PyTuple_GET_ITEM(record, 0)) == 0)) {
                arguments = PyTuple_Pack(8, PyTuple_GET_ITEM(record, 0), PyTuple_GET_ITEM(record, 1), PyTuple_GET_ITEM(record, 2),
                                         PyTuple_GET_ITEM(record, 3), Py_None, Py_None, time, pairs);
            }
            Py_XDECREF(pairs);
        }
        Py_DECREF(record);
        if (arguments == NULL) goto failed;
        done = PyObject_Call(produce, arguments, NULL);
        Py_DECREF(arguments);
        if (done == NULL) {
            if (!PyErr_ExceptionMatches(refusals)) goto failed;
            PyErr_Clear();
            break;
        }
        Py_DECREF(done);
    }
    Py_XDECREF(kept);
    return PyLong_FromSsize_t(i);
failed:
    Py_XDECREF(kept);
    return NULL;
}
