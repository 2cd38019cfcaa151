// The package of the workspace: its own name, with exports, and the names of its imports.
console.log(require('#x'), require('self/x'), require('./x.js') === require('#x'));
import('#x').then((m) => console.log(m.default));
try { require('#none'); } catch (error) { console.log(error.code); }
try { require('self/none'); } catch (error) { console.log(error.code); }
