# configparser and tomllib read settings; errors name the line.
# Also as a cell of a context.
import configparser
import tomllib

config = configparser.ConfigParser()
config.read_string("[DEFAULT]\nhome=/srv\n[web]\nport = 80\nroot = %(home)s/www\n")
print(config["web"]["root"], config.getint("web", "port"), config.get("web", "none", fallback="-"))
print(tomllib.loads('a = [1, 2.5]\nd = 1979-05-27T07:32:00Z\n[t]\ns = "é"'))
tomllib.loads("x = 1\ny = = 2\n")
