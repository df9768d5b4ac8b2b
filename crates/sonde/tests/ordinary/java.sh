# An echo server and its client in Java, each run from its source.
mkdir server client
cat >server/Server.java <<'END'
import java.net.*;

class Server {
    public static void main(String[] arguments) throws Exception {
        try (ServerSocket listener = new ServerSocket(7000)) {
            while (true) {
                Socket stream = listener.accept();
                new Thread(() -> {
                    try (stream) {
                        stream.getInputStream().transferTo(stream.getOutputStream());
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                }).start();
            }
        }
    }
}
END
cat >client/Client.java <<'END'
import java.net.*;
import java.util.*;

class Client {
    public static void main(String[] arguments) throws Exception {
        int right = 0;
        for (int i = 0; i < 4; i++) {
            byte[] sent = new byte[400000];
            new Random(i).nextBytes(sent);
            try (Socket stream = new Socket("h2", 7000)) {
                new Thread(() -> {
                    try {
                        stream.getOutputStream().write(sent);
                        stream.shutdownOutput();
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                }).start();
                if (Arrays.equals(sent, stream.getInputStream().readAllBytes())) right++;
            }
        }
        System.out.println(InetAddress.getByName("h2").getHostAddress() + " right " + right);
    }
}
END
serve h2 java server/Server.java
eventually listens h2 7000
java client/Client.java
