/* What all parts need: slots of Python objects, and callables that are methods, as Python functions are. */
#ifndef SAMZAPY_METHOD_H
#define SAMZAPY_METHOD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#ifdef Py_GIL_DISABLED
#error "written for the interpreter with its global lock; without it samzapy runs on its Python functions"
#endif

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

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

/* Adds to the whole number in a slot; −1: an exception. */
static int add_to(PyObject *object, Py_ssize_t offset, Py_ssize_t more) {
    PyObject *sum;
    Py_ssize_t before = SLOT(object, offset) == NULL ? 0 : PyLong_AsSsize_t(SLOT(object, offset));
    if (before == -1 && PyErr_Occurred()) return -1;
    sum = PyLong_FromSsize_t(before + more);
    if (sum == NULL) return -1;
    set_slot(object, offset, sum);
    return 0;
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

/* Whether two names are equal, which are mostly other objects and the same ASCII text. −1: an exception, never for exact ASCII text. */
static int same_text(PyObject *one, PyObject *other) {
    if (PyUnicode_CheckExact(one) && PyUnicode_CheckExact(other) && PyUnicode_IS_COMPACT_ASCII(one) && PyUnicode_IS_COMPACT_ASCII(other)) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(one);
        return size == PyUnicode_GET_LENGTH(other) && memcmp(PyUnicode_DATA(one), PyUnicode_DATA(other), (size_t)size) == 0;
    }
    return PyObject_RichCompareBool(one, other, Py_EQ);
}

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
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "samzapy.native._hot_path." name_, .tp_basicsize = sizeof(struct_),             \
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

#endif
