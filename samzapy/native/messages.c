/* Messages of the Kafka client, and the envelopes that are made of them (container/envelopes.py, container/batches.py). */
#include "method.h"

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
    decoded = call_serde(decode, data);
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
    is_same = same_text(name, *topic);
    Py_DECREF(name);
    return is_same;
}

/* The class of envelopes, and where its objects keep what they hold. Other callables that make envelopes are called. */
enum { ENVELOPE_KEY, ENVELOPE_MESSAGE, ENVELOPE_SSP, ENVELOPE_RECORD, ENVELOPE_PARTS };
static const char *const ENVELOPE_NAMES[ENVELOPE_PARTS] = {"key", "message", "system_stream_partition", "_record"};
static PyTypeObject *envelope_type;
static Py_ssize_t envelope_slots[ENVELOPE_PARTS];

/* fill_envelopes(cls): from now on objects of `cls`, whose only state is these four slots, are made without a call. */
static PyObject *fill_envelopes(PyObject *module, PyObject *cls) {
    Py_ssize_t slots[ENVELOPE_PARTS];
    int i;
    if (!PyType_Check(cls) || PyType_IS_GC((PyTypeObject *)cls) || ((PyTypeObject *)cls)->tp_itemsize != 0 ||
        ((PyTypeObject *)cls)->tp_basicsize != (Py_ssize_t)(sizeof(PyObject) + ENVELOPE_PARTS * sizeof(PyObject *))) {
        PyErr_SetString(PyExc_TypeError, "an envelope has four slots, nothing else, and no garbage collection");
        return NULL;
    }
    for (i = 0; i < ENVELOPE_PARTS; i++) {
        if ((slots[i] = offset_of(cls, ENVELOPE_NAMES[i])) < 0) return NULL;
    }
    memcpy(envelope_slots, slots, sizeof slots);
    Py_XSETREF(envelope_type, (PyTypeObject *)Py_NewRef(cls));
    Py_RETURN_NONE;
}

/* An envelope of a message; a new reference. */
static PyObject *envelope_of(const Parts *parts, PyObject *message, PyObject *make, PyObject *ssp, PyObject *decode_key, PyObject *decode_value) {
    PyObject *envelope, *arguments[5] = {NULL, NULL, NULL, ssp, message};
    if ((arguments[1] = decoded_part(parts, message, KEY, decode_key)) == NULL) return NULL;
    if ((arguments[2] = decoded_part(parts, message, VALUE, decode_value)) == NULL) {
        Py_DECREF(arguments[1]);
        return NULL;
    }
    if (make == (PyObject *)envelope_type) {
        envelope = envelope_type->tp_alloc(envelope_type, 0);
        if (envelope != NULL) {
            SLOT(envelope, envelope_slots[ENVELOPE_KEY]) = arguments[1];
            SLOT(envelope, envelope_slots[ENVELOPE_MESSAGE]) = arguments[2];
            SLOT(envelope, envelope_slots[ENVELOPE_SSP]) = Py_NewRef(ssp);
            SLOT(envelope, envelope_slots[ENVELOPE_RECORD]) = Py_NewRef(message);
            return envelope;
        }
    } else {
        envelope = PyObject_Vectorcall(make, arguments + 1, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_DECREF(arguments[1]);
    Py_DECREF(arguments[2]);
    return envelope;
}

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
