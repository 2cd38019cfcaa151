// A module finds the names of its package, too.
import x from '#x';
import self from 'self';
console.log(x, x === self);
