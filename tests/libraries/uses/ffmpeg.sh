# Encodes a synthetic film and sound, decodes it, and counts frames.
ffmpeg=$(python3 -c 'import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())')
"$ffmpeg" -v error -f lavfi -i testsrc=size=320x240:rate=10 -f lavfi -i sine -t 2 -c:v libx264 -pix_fmt yuv420p -c:a aac film.mp4
"$ffmpeg" -v error -i film.mp4 -vf scale=32:24 -pix_fmt gray -f rawvideo - | wc -c
"$ffmpeg" -v error -i film.mp4 -vn -ac 1 -ar 8000 -f s16le - | python3 -c 'import sys; print(15000 < len(sys.stdin.buffer.read()) // 2 < 17000)'
