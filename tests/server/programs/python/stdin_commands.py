# A command loop of the module cmd, driven by standard input.
import cmd


class Shell(cmd.Cmd):
    prompt = "> "
    use_rawinput = False

    def do_add(self, words):
        """add A B: the sum"""
        print(sum(map(int, words.split())))

    def do_EOF(self, _):
        print()
        return True


Shell().cmdloop("ready")
