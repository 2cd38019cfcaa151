// An error with a cause, properties and a class of its own.
class ConfigError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'ConfigError';
    this.path = '/etc/app';
  }
}
try {
  JSON.parse('{"a": }');
} catch (error) {
  throw new ConfigError('cannot read', { cause: error });
}
