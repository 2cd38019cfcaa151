module.exports = ["of x"];
