/* Flat dicts as a store keeps them until the next commit (store/flat.py): numbers in place, not as objects, and one tuple of names for all of one shape.
 * A dict of its own for each would be spread over more memory than a processor's cache has, and take several times as long to copy and to free. */
#include "method.h"
#include <stdint.h>

enum { MAX_FLAT_BYTES = 512, ENTRY_ROOM = 32, CHARACTER_ROOM = 6, MAX_ENTRIES = (MAX_FLAT_BYTES - 2) / ENTRY_ROOM }; /* rooms: see store/flat.py */
enum { NUMBER, REAL, TEXT, IS_TRUE, IS_FALSE, NOTHING, KIND_BITS = 4 };

typedef union {
    long long number;
    double real;
    PyObject *text;
} Item;

typedef struct {
    PyObject_VAR_HEAD    /* ob_size: how many entries */
    PyObject *names;     /* a tuple */
    uint64_t kinds;      /* KIND_BITS for each entry */
    Py_ssize_t bytes;    /* that its JSON takes at most */
    Item items[];
} Flat;

static PyTypeObject Flat_Type;

#define KIND(kinds, i) (int)((kinds) >> (KIND_BITS * (i)) & ((1 << KIND_BITS) - 1))

/* What was freed last is used again first, because it is still in the processor's cache. */
enum { MAX_FREE = 256 };
static Flat *free_flats[MAX_ENTRIES + 1][MAX_FREE];
static int free_counts[MAX_ENTRIES + 1];

static void flat_dealloc(PyObject *object) {
    Flat *self = (Flat *)object;
    Py_ssize_t count = Py_SIZE(self), i;
    for (i = 0; i < count; i++) {
        if (KIND(self->kinds, i) == TEXT) Py_DECREF(self->items[i].text);
    }
    Py_XDECREF(self->names);
    if (free_counts[count] < MAX_FREE) {
        free_flats[count][free_counts[count]++] = self;
    } else {
        PyObject_Free(self);
    }
}

static Flat *new_flat(Py_ssize_t count) {
    Flat *self = free_counts[count] ? free_flats[count][--free_counts[count]] : PyObject_Malloc(sizeof(Flat) + (size_t)count * sizeof(Item));
    if (self == NULL) return (Flat *)PyErr_NoMemory();
    PyObject_InitVar((PyVarObject *)self, &Flat_Type, count);
    return self;
}

static int is_plain(PyObject *text) {
    return PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text) && PyUnicode_GET_LENGTH(text) <= MAX_FLAT_BYTES;
}

/* The names of the last shapes, by the lengths of the names and their first characters: tuples of plain text. */
enum { SHAPES = 64 };
static PyObject *shapes[SHAPES];

static int has_names(PyObject *shape, PyObject *const *names, Py_ssize_t count) {
    Py_ssize_t i;
    if (shape == NULL || PyTuple_GET_SIZE(shape) != count) return 0;
    for (i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(shape, i);
        if (one != names[i] && !same_text(one, names[i])) return 0;
    }
    return 1;
}

/* A new reference to a tuple of these names. */
static PyObject *shape_of(PyObject *const *names, Py_ssize_t count) {
    PyObject **shape, *made;
    size_t at = 0;
    Py_ssize_t i;
    for (i = 0; i < count; i++) at = at * 31 + (size_t)PyUnicode_GET_LENGTH(names[i]) + *(unsigned char *)PyUnicode_DATA(names[i]); /* 0 after the last one */
    shape = &shapes[at % SHAPES];
    if (has_names(*shape, names, count)) return Py_NewRef(*shape);
    for (i = 0; i < count; i++) Py_INCREF(names[i]); /* making a tuple may collect garbage, and so run code that changes the dict */
    made = PyTuple_New(count);
    for (i = 0; i < count; i++) {
        if (made == NULL) Py_DECREF(names[i]);
        else PyTuple_SET_ITEM(made, i, names[i]);
    }
    if (made == NULL) return NULL;
    Py_XSETREF(*shape, Py_NewRef(made));
    return made;
}

/* A flat dict as it is kept, a new reference, if its JSON takes at most `most` bytes and no more than MAX_FLAT_BYTES; NULL without an exception: it is none,
 * or takes more. Other code runs only if it collects garbage while a tuple of names is made; by then nothing here depends on the dict any more. */
static Flat *flat_of(PyObject *value, Py_ssize_t most) {
    PyObject *names[MAX_ENTRIES], *name, *item;
    Item items[MAX_ENTRIES];
    uint64_t kinds = 0;
    Py_ssize_t at = 0, size = 2, count = 0, i;
    Flat *self;
    if (PyDict_GET_SIZE(value) > MAX_ENTRIES) return NULL;
    while (PyDict_Next(value, &at, &name, &item)) {
        int kind;
        if (!is_plain(name)) return NULL;
        size += ENTRY_ROOM + CHARACTER_ROOM * PyUnicode_GET_LENGTH(name);
        if (PyLong_CheckExact(item)) {
            int overflow;
            items[count].number = PyLong_AsLongLongAndOverflow(item, &overflow);
            if (overflow) return NULL;
            kind = NUMBER;
        } else if (PyFloat_CheckExact(item)) {
            items[count].real = PyFloat_AS_DOUBLE(item);
            if (!Py_IS_FINITE(items[count].real)) return NULL;
            kind = REAL;
        } else if (PyUnicode_CheckExact(item)) {
            if (!is_plain(item)) return NULL;
            size += CHARACTER_ROOM * PyUnicode_GET_LENGTH(item);
            items[count].text = item;
            kind = TEXT;
        } else if (item == Py_True || item == Py_False || item == Py_None) {
            kind = item == Py_True ? IS_TRUE : item == Py_False ? IS_FALSE : NOTHING;
        } else {
            return NULL;
        }
        if (size > MAX_FLAT_BYTES) return NULL;
        kinds |= (uint64_t)kind << (KIND_BITS * count);
        names[count++] = name;
    }
    if (size > most || (self = new_flat(count)) == NULL) return NULL;
    self->names = NULL;
    self->kinds = kinds;
    self->bytes = size;
    memcpy(self->items, items, (size_t)count * sizeof(Item));
    for (i = 0; i < count; i++) {
        if (KIND(kinds, i) == TEXT) Py_INCREF(items[i].text);
    }
    if ((self->names = shape_of(names, count)) == NULL) Py_CLEAR(self);
    return self;
}

/* The dict again, a new one each time. */
static PyObject *dict_of(Flat *self) {
    PyObject *made = PyDict_New();
    Py_ssize_t i;
    for (i = 0; made != NULL && i < Py_SIZE(self); i++) {
        PyObject *item;
        int kind = KIND(self->kinds, i), has_failed;
        if (kind == NUMBER) {
            item = PyLong_FromLongLong(self->items[i].number);
        } else if (kind == REAL) {
            item = PyFloat_FromDouble(self->items[i].real);
        } else {
            item = Py_NewRef(kind == TEXT ? self->items[i].text : kind == IS_TRUE ? Py_True : kind == IS_FALSE ? Py_False : Py_None);
        }
        has_failed = item == NULL || PyDict_SetItem(made, PyTuple_GET_ITEM(self->names, i), item);
        Py_XDECREF(item);
        if (has_failed) Py_CLEAR(made);
    }
    return made;
}

static PyObject *flat_dict(PyObject *self, PyObject *nothing) {
    return dict_of((Flat *)self);
}

/* flat(value, most): a Flat, or None. */
static PyObject *flat(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t most;
    PyObject *made;
    if (count != 2 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "flat takes a dict and a number of bytes");
        return NULL;
    }
    most = PyLong_AsSsize_t(args[1]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    made = (PyObject *)flat_of(args[0], most);
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

static PyMethodDef flat_methods[] = {{"dict", flat_dict, METH_NOARGS, "dict(): a new dict, equal to the one that was kept."}, {NULL}};
static PyMemberDef flat_members[] = {{"bytes", T_PYSSIZET, offsetof(Flat, bytes), READONLY, "that its JSON takes at most"}, {NULL}};

static PyTypeObject Flat_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "samzapy.native._hot_path.Flat", .tp_basicsize = sizeof(Flat), .tp_itemsize = sizeof(Item),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .tp_dealloc = flat_dealloc, .tp_methods = flat_methods, .tp_members = flat_members,
};
