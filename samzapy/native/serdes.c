/* Encoders and decoders (serde/basic.py, serde/record.py). */
#include "method.h"

static PyObject *same_bytes, *bytes_decode, *str_encode; /* bytes.__bytes__, bytes.decode, str.encode */

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
    if (m->function == bytes_decode) {
        decoded = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(args[0]), PyBytes_GET_SIZE(args[0]), NULL);
    } else {
        decoded = PyObject_CallOneArg(m->function, args[0]);
    }
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

/* `function(argument)`. What serdes use most is done here, because a call through Python takes longer than it does. */
static PyObject *call_serde(PyObject *function, PyObject *argument) {
    if (function == same_bytes && PyBytes_CheckExact(argument)) return Py_NewRef(argument);
    if (function == str_encode && PyUnicode_CheckExact(argument)) return PyUnicode_AsUTF8String(argument);
    if (Py_IS_TYPE(function, &Decode_Type)) return decode(function, &argument, 1, NULL);
    if (Py_IS_TYPE(function, &Encode_Type)) return encode(function, &argument, 1, NULL);
    return PyObject_CallOneArg(function, argument);
}
